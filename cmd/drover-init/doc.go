// Command drover-init is the supervisor: the first process of every task. Only the agent starts it.
package main
