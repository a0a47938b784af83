// Package env is the command line of the execution service. "drover env" is for environments, "drover run" for a command
// in a fresh runner, "drover runner" for runners that stay claimed, and "drover execution" for receipts.
//
// Its goroutines: the one that tells of a claim that waits ends with the claim, and those of a session end with its context.
// The one that reads stdin ends with stdin, or the process, and the one that packs a folder with the upload.
package env
