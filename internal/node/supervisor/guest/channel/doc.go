// Package channel is one request of the agent as the guest sees it. It has the frames that answer it, and the flow control
// of the bytes that go in (Inbox) and out (Outbox). Nothing is ever kept beyond the protocol's window.
//
// What a channel is for is decided by package server; the messages are package wire's. It starts no goroutines.
package channel
