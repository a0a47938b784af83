// Package examine looks at what a machine has for running tasks and what it lacks: its kernel, rights, control groups, namespaces, overlay,
// seccomp, docker, gVisor and disk. drover doctor shows that, and a node registers it, so that servers know it of all nodes.
//
// It changes nothing, starts no goroutine, and the one program that it starts ends at once. Hostile programs are package trial's.
package examine
