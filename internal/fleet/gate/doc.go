// Package gate decides who may join. It checks the tokens that nodes show, binds a machine's token to the one node that used it
// first, and certifies machines where the links between agents are mutual TLS. Of a server that makes its certificates itself it keeps
// the authority (Own), which certifies the server and any node that may register: package tlspin tells how.
//
// A machine of the fleet shows the token of its intent, which is good for one node. Any other node shows the server's join
// token, or has shown a certificate of the configured authority. What a node claims to be is never believed: the
// attributes that make it a machine of the fleet are set here, from the token alone.
//
// The package reads the state and writes the log through interfaces that it declares. It listens nowhere, dials nothing, and
// starts no goroutine (Own.Run is its caller's): Handler and TLS stand before the links that internal/server serves. Which machines
// are bought is packages office's and pool's.
package gate
