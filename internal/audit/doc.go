// Package audit keeps the record of requests: one line of JSON for each decision about one that changes something or reads a secret, in
// sinks that are files, syslog or an HTTP server.
//
// Each sink's lines are a chain: the last member of a line is a digest of it and of the digest before, over rotated files and
// restarts. At least each minute in which lines were written a seal attests the chain with a key that is then replaced by its own
// digest. So who takes the machine over can forge what was written after the last seal, and nothing before. Verify checks files,
// and names the first line that is broken.
//
// What is recorded of a request, and when, is package httpapi's. A goroutine for each sink writes its lines; it ends with Run.
package audit
