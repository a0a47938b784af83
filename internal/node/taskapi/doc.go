// Package taskapi serves the agent's HTTP API to the tasks of a node: at a socket in each task's folder for secrets, where no network and
// no port is needed. Who asks there shows a token, always.
//
// A task is taken for hostile. It may replace or remove what is in its folder, connect as often as it can, send wrong tokens, and never
// read an answer. So the folder is opened once, no link is followed, and the connections, requests and wrong tokens of each socket are
// bounded: a flood takes from the task itself.
//
// What is asked, and what the token's holder may have, is the handler's business. A Socket owns a goroutine that accepts, and net/http's of
// its connections; they end with its Close, the requests under way when their handler
// heeds that.
package taskapi
