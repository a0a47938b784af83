// Package env is the command line of the execution service: "drover env" for environments, "drover run" for a command in
// a fresh runner, and "drover runner" for runners that stay claimed.
//
// Its goroutines: what tells of a claim that waits ends with the claim; those of a session end with its context, and the
// one that reads stdin with stdin, or the process; the one that packs a folder ends with the upload.
package env
