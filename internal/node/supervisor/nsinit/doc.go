// Package nsinit is the first half of a sandbox's life: the agent starts
//
//	drover-init sandbox <control fd>
//
// in fresh namespaces, and Main builds the root file system, closes every door, and executes the same program again
// without arguments, as PID 1: from there on it is an ordinary supervisor. What the two callers do:
//
//   - cmd/drover-init, before it reads anything:
//     if len(os.Args) > 2 && os.Args[1] == nsinit.Command { os.Exit(nsinit.Main(os.Args[2:])) }
//   - supervisor.Launch, when LaunchConfig.Sandbox is not empty (it is the control descriptor's number in decimal):
//     Args = {"drover-init", nsinit.Command, string(cfg.Sandbox)}. LaunchConfig.Forked then does the talking over the
//     control socket, and returns when the second execution happened or failed; only after that the second execution
//     reads its configuration from descriptor 4.
//
// All other inherited descriptors keep their numbers across the second execution, so the supervisor finds its listener,
// configuration and log directory where the agent put them; the control descriptor and those of mounts are
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
