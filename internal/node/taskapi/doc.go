// Package taskapi serves the agent's HTTP API to the tasks of a node: at a socket in each task's folder for secrets, where no network and
// no port is needed. Who asks there shows a token, always.
//
// A task is taken for hostile. It may replace or remove what is in its folder, connect as often as it can, send wrong tokens, and never
// read an answer. So no link is followed there, and the connections, requests and wrong tokens of each socket are bounded: a flood takes
// from the task itself.
//
// What is asked, and what the token's holder may have, is the handler's business. A Socket owns a goroutine that accepts, and net/http's of
// its connections. They end with its Close: at once, but for requests under way, whose contexts end.
package taskapi
