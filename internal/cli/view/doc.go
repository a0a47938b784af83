// Package view has what several families of commands show alike: tables of allocations, deployments, and why work could
// not be placed. It asks no agent and starts no goroutine.
package view
