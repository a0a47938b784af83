// Package appendlog is a file of records that only grows, until it is written anew with those that still count. A record
// that was appended outlives the process, not the machine: there is no fsync. A record that was torn by the end of a
// process is cut off when the file is read, as nobody was told that it is there.
//
// A Format says how records follow each other: as lines, or framed with their length and a checksum. What records mean is
// their writer's. The package starts no goroutines, and a File has no lock: its owner has.
package appendlog
