// Package native is the face of what is Drover's own: environments, runners, executions and their files, as JSON under
// /v1. openapi.json describes it and is generated from the table in routes.go.
//
// Errors are {"code","message"}; the codes are drover.Code's names. Durations are nanoseconds. Bytes in JSON are base64.
//
// # Attaching
//
// GET /v1/execution/{execution}/attach is a websocket, and so is GET /v1/runner/{runner}/execute, whose first message
// from the client is an ExecutionRequest as JSON text. Text messages are JSON objects, binary messages are bytes.
//
// From the server:
//
//	{"type":"started","execution":"…","pid":1}    first
//	binary: 1 byte stream (1 stdout, 2 stderr), then the bytes
//	{"type":"skipped","stream":"stdout","offset":N}   bytes before N are no longer kept; what follows begins there
//	{"type":"refused","code":"…","message":"…"}     something that the client sent was not done; the execution goes on
//	{"type":"receipt","receipt":{…}}              last; then the close frame with 1000
//	{"type":"error","code":"…","message":"…"}     instead of a receipt when something failed
//
// From the client:
//
//	binary: stdin
//	{"type":"close-stdin"}   {"type":"resize","rows":24,"cols":80}   {"type":"signal","signal":"INT"}
//
// With ?mode=text, output comes as {"type":"stdout","data":"…"} and {"type":"stderr","data":"…"}, where no character is
// ever cut in two, and stdin may be sent as {"type":"stdin","data":"…"}. The query's stdout and stderr are the offsets
// from which to read.
//
// It holds no rules about runners or executions: packages exec/runner and exec/executor do. A request runs in the
// server's goroutine for it; an attached WebSocket has one more, which ends with it.
package native
