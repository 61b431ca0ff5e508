// Package patient is what lies under a running pebble, which ends the process when a write fails:
// a file system (FS) that waits for space instead, and that does not come back from any other
// failure; the watch over that space (Space), with a ballast that is given back when there is none;
// the tables in which damage was found, at which compactions stay (Suspects); and when compactions
// may run (Schedule). It knows no records.
package patient
