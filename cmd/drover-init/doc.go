// Command drover-init is the supervisor: the first process of every task. Only the agent starts it.
//
// Which goroutines it has package guest/server says.
package main
