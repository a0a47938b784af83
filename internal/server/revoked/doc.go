// Package revoked keeps callers out whose certificate, or whose node, was revoked. Of new connections it refuses the handshake,
// and those that are open it closes as soon as this server's state has the revocation. What is revoked the state says; who a node
// is package gate knows, which refuses its calls.
//
// A Guard starts no goroutine. Run, which closes connections, is its caller's.
package revoked
