// Package artifact gets a task's artifacts: files, archives that are unpacked, folders of buckets, and trees of git repositories,
// from http(s), S3, Google Cloud Storage, git, and files of the node. What it takes is bounded in bytes, files and time, and
// never lands outside of its destination.
//
// Which addresses may be reached is decided by the HTTP client that it is given, and for git by package gitfetch. Whether
// a job's start may be tried again is the business of package hook. It starts no goroutines.
package artifact
