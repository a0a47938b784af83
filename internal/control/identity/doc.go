// Package identity says who may have which signed token, and makes it. Tasks and nodes have their identities, machines that are
// about to become nodes the token that introduces them, and executions one that says where they run.
//
// What tokens say is package claims', and the keys are package keyring's. It starts no goroutines.
package identity
