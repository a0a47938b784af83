// Package certs is the family "drover tls". It makes an authority, and certificates of servers, nodes and people, as files of
// the folder in which it runs, and has the servers refuse some of them. Only the latter asks an agent. Its flags and the
// names of its files are those of Nomad's command line.
//
// A command runs in its caller's goroutine.
package certs
