// Package jobspec reads job files: Nomad's HCL (version 2) into drover.Job. Variables, locals, functions and dynamic
// blocks are evaluated; ${attr.…}, ${node.…}, ${meta.…}, ${env[…]} and ${NOMAD_…} are left for the node.
//
// It checks what a file may hold, and not whether the job makes sense: that is drover.Job.Validate's, and the drivers'.
// It reads no file but those that functions name below Options.Dir, and starts no goroutines.
package jobspec
