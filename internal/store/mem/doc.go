// Package mem is the store that keeps everything in memory: the store of persistent="false", the
// store of the simulation, and the oracle that other stores are held to.
//
// Messages are kept as the pointers they were put as, since nobody changes them. A store made by
// NewUnsynced has a disk's weakness: what Apply took is visible at once but durable only after
// Sync, and CrashClone gives the store that a crash leaves behind.
package mem
