// Package rotation keeps the newest of a kind of files in a folder. A file is there whole or not at all, also after a loss of
// power, and an old one goes only when a new one is there. Only the user of the process can read the files.
//
// Aside does that for a file that grows: it is renamed, and another begins.
//
// It starts no goroutine, and knows no time: names are given.
package rotation
