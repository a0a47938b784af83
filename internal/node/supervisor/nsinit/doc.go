// Package nsinit is the first half of a sandbox's life: the agent starts
//
//	drover-init sandbox <control fd> [--] <arguments of the supervisor>
//
// in fresh namespaces, and Main builds the root file system, closes every door, and executes the same program again
// with the arguments that follow, as PID 1. cmd/drover-init calls it as
//
//	if len(os.Args) > 1 && os.Args[1] == nsinit.Command { os.Exit(nsinit.Main(os.Args[2:])) }
//
// All other inherited descriptors keep their numbers across the second execution, so the supervisor finds its listener,
// configuration, log and cgroup directories where the agent put them; the control descriptor and those of mounts are
// closed. The second execution, and not a call, because capabilities and seccomp filters belong to threads, a Go
// program has many, and the memory that the set-up dirtied is given back.
//
// Over the control socket (SOCK_STREAM) the agent sends one encoded Config, with the descriptors that it names as
// SCM_RIGHTS, and reads until end of file: nothing means that the supervisor runs; text is the reason why not.
//
// No path of the host is looked up here: whatever is mounted came as a descriptor that the agent opened, and targets
// are resolved after pivot_root, where no link can lead out.
package nsinit

// Command is the word that makes drover-init run Main.
const Command = "sandbox"
