package herd

// execText is the texts of the pages of environments, runners and executions.
var execText = struct {
	Warm, Starting, Queued, Claimed, Waiting, Image, Driver, Network, IdleTimeout, LastError, Yes, No                         string
	Runner, Runners, NoRunners, Allocation, ClaimedAt, Labels                                                                 string
	Executions, AllExecutions, NoExecutions, Runs, Exited, LimitWall, LimitMemory, Cut                                        string
	Follows, Lost, Refused, AllShown, Partial, Play, Pause, Missed, Before, Speed, AtOnce, Seek, Cast, CastLater, Download    string
	Parts, Files, Terminal, Root, Upload, UploadTo, NoFiles, Size, Mode, Owner, Modified, FirstOf, Binary, CutFile, ShellMore string

	Environments, NoEnvironments, Unkept, WarmBetween string

	Status, Environment, Node, Command, Memory, CPU, Result, Stdout, Stderr, NewestOf string

	EnvironmentColumns, RunnerColumns, ExecutionColumns, FileColumns []string
}{
	Warm: "Warm of size", Starting: "Starting", Queued: "Without a place", Claimed: "Claimed", Waiting: "Claims that wait",
	Image: "Image", Driver: "Driver", Network: "Network", IdleTimeout: "Idle timeout", LastError: "Why runners do not come", Yes: "yes",
	No: "no",

	Runner: "Runner", Runners: "Runners", Allocation: "Allocation", ClaimedAt: "Claimed (UTC)", Labels: "Labels",
	NoRunners: "No runner is here: none yet, or none that your token may see. `drover env put ID -image IMAGE -pool-size 2` keeps some warm.",

	Executions: "Executions", AllExecutions: "Executions of it, running and ended, with search",
	NoExecutions: "No execution is here: none yet, or none in the last 15 minutes.",
	Runs:         "runs", Exited: "exit %d", LimitWall: "Time limit", LimitMemory: "Memory limit",
	Cut: "The first %s are shown.",

	Follows: "shows what it writes, as it writes it; it does not wait for that", Lost: "No connection: it is tried again.",
	Refused: "This is not shown any more: the execution is gone, or your token may not see it.", AllShown: "all that is kept is shown",
	Partial: "it began under an earlier server: what came before has no times of its own", Play: "Replay", Pause: "Pause",
	Missed: "%s were missed: they came too fast", Before: "%s before are not shown", Speed: "Speed", AtOnce: "Show all",
	Seek: "Time of the replay in milliseconds", Cast: "Download as asciicast", CastLater: "It still runs: an asciicast is made when it ended.",
	Download: "Download",

	Parts: "Parts of the runner", Files: "Files", Terminal: "Terminal", Root: "working directory", Upload: "Upload",
	UploadTo: "Files to upload here", NoFiles: "No file is here.", Size: "Size", Mode: "Mode", Owner: "Owner", Modified: "Modified (UTC)",
	FirstOf: "The first %d of %d.", Binary: "This is no text. Download it to look at it.", CutFile: "The first %s are shown.",
	ShellMore: "The same in a terminal of yours:",

	Status: "Status", Environment: "Environment", Node: "Node", Command: "Command", Memory: "Memory", CPU: "CPU", Result: "Result",
	Stdout: "stdout", Stderr: "stderr", NewestOf: "The newest %d of %d.",

	Environments: "Environments",
	NoEnvironments: "No environment is here: none yet, or none that your token may see. " +
		"`drover env put ID -image IMAGE -pool-size 2` makes one.",
	Unkept: "Of %d of them how they stood is not kept: a server keeps that of 64 environments, of each namespace equally many, " +
		"and of those that were used last.",
	WarmBetween: "%d to %d warm of %d",

	EnvironmentColumns: []string{
		"Environment", "Image", "Warm", "Starting", "Queued", "Claimed", "Waiting", "Last hour", "Claim p50 / p95 / p99", "Start p50 / p95 / p99",
		"Last error",
	},
	RunnerColumns:    []string{"Runner", "Status", "Environment", "Node", "Claimed (UTC)", "Labels"},
	FileColumns:      []string{"Name", "Size", "Mode", "Owner", "Modified (UTC)"},
	ExecutionColumns: []string{"Execution", "Status", "Started (UTC)", "Took", "Memory", "Runner", "Command"},
}
