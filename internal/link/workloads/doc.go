// Package workloads is exchange.Workloads between two processes: Handler serves a node's, and Client asks for them. Files and logs are
// streamed, and so are the frames of an execution's session, whose input comes by calls of its own.
//
// Which connection they go over is package link's, and what messages look like on it package wire's. A request runs in the server's
// goroutine for it; a session of Client has one that receives, which ends with the session.
package workloads
