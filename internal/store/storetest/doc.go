// Package storetest holds every store to the contract of package store: random operations
// against a model, reopening, a crash at every point where bytes reach the disk, full and freed
// again. A store's own test calls Run with a World: a place in which the store lives, crashes and
// runs out of space.
package storetest
