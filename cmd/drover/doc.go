// Command drover is Drover: control plane, node agent, execution service and command line in one binary. On other systems
// than Linux it is the command line only.
package main
