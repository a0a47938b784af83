// Package nomadbackend keeps warm runners as jobs on an existing Nomad cluster, through its public API, so that the
// execution service stands on that instead of Drover's own control plane. A Backend gives runner.Service what it
// needs: the state, its changes, the intake and the nodes' workloads.
//
// An environment is a parameterized job that is never dispatched: Nomad keeps it and runs nothing for it. A runner is a
// batch job with one allocation; who claimed it stands in the meta of a second group without allocations, which Nomad
// changes in place. Everything is read back from there after a restart. After each loss of the event stream all jobs
// are listed again, as Nomad does not say what a stream missed.
//
// There is no supervisor in such runners: commands and files go through Nomad's exec and small shell commands, so the
// image needs sh, env, and for files cat, find, stat, tar. What cannot be done that way is refused, not pretended:
// limits of memory, processes and CPU share for one execution, stderr apart from a terminal, and executions that
// outlive their connection.
//
// Commands and relative paths start at the environment's working directory, else at the image's, else in the task's own
// local directory.
//
// It decides nothing about claims: package runner does, on either backend. Run owns the goroutine that follows Nomad's
// events; those of a session or a download end with it.
package nomadbackend
