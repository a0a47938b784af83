// Package httpapi carries HTTP dialects ("faces"): it turns a table of routes into one handler, and gives faces what
// they share: decoding and encoding, errors to statuses, limits, compression, tokens, panics. It holds no dialect and
// no logic of its own; each face lives in a folder below and declares the interfaces that it needs.
//
// A Server's requests run in net/http's goroutines and end with Serve, which waits for them.
package httpapi
