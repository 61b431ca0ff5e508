// Package files is the folder of a store as it lies on the disk, and knows no records: the lock of
// the folder, what is noted of how far pebble's files are durable (Known), whether they are as they
// were noted (Look), and how what is damaged of them can be read all the same (Mend for logs and
// manifest, Pattern for tables). It opens no database.
package files
