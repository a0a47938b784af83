// Package pipelink carries connections between an agent and a drover-init over two pipes, a container's stdin and stdout.
// It is for places where no socket can pass: into gVisor, or into a virtual machine.
//
// The pipes belong to a container runtime. It may be restarted, and so may the agent, in the middle of anything; what was
// on its way is then lost or cut. So bytes travel in chunks that carry a keyed sum, and a reader that finds something else
// looks for the next chunk. A new agent, and the answer to it, begin with as many zeros as a cut chunk could ask for. The
// key was sent before the guest's first program ran; so whatever a guest manages to write into the pipes is ignored.
//
// What the bytes mean is package wire's. A Carrier owns the goroutines that pump the pipes; they end with the stream or
// the connection.
package pipelink
