// Package cni connects network namespaces by the Container Network Interface: it reads the networks that a machine's
// administrator configured, runs their plugins, and says which address they gave.
//
// Plugins run as the agent. So only files count that nobody else may change, plugins get nothing of the agent's environment, and one
// that does not end is ended.
//
// Who has which namespace is package groupnet's, and what guests reach from there package egress'. It owns no goroutines.
package cni
