// Package disk is the store in a folder, on pebble.
package disk
