// Package rotation keeps the newest of a kind of files in a folder. A file is there whole or not at all, also after a loss of
// power, and an old one goes only when a new one is there. Only the user of the process can read the files.
//
// It starts no goroutine, and knows no time: names are given.
package rotation
