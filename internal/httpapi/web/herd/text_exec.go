package herd

import "github.com/drover-project/drover/execution"

// execText is the texts of the pages of environments, runners and executions.
var execText = struct {
	Warm, Starting, Queued, Claimed, Waiting, Image, Driver, Network, IdleTimeout, LastError, Yes, No                         string
	Runner, Runners, NoRunners, Allocation, ClaimedAt, Labels                                                                 string
	Executions, AllExecutions, NoExecutions, Runs, Exited, LimitWall, LimitMemory, Cut                                        string
	Follows, Lost, Refused, AllShown, Partial, Play, Pause, Missed, Before, Speed, AtOnce, Seek, Cast, CastLater, Download    string
	Parts, Files, Terminal, Root, Upload, UploadTo, NoFiles, Size, Mode, Owner, Modified, FirstOf, Binary, CutFile, ShellMore string

	Environments, NoEnvironments, Unkept, WarmBetween string

	Status, Environment, Node, Command, Memory, CPU, Result, Stdout, Stderr, NewestOf string

	NoOutput  string
	Sentences map[execution.Cause]string

	EnvironmentColumns, RunnerColumns, ExecutionColumns, FileColumns []string
}{
	Warm: "Warm of size", Starting: "Starting", Queued: "Without a place", Claimed: "Claimed", Waiting: "Claims that wait",
	Image: "Image", Driver: "Driver", Network: "Network", IdleTimeout: "Idle timeout", LastError: "Why runners do not come", Yes: "yes",
	No: "no",

	Runner: "Runner", Runners: "Runners", Allocation: "Allocation", ClaimedAt: "Claimed", Labels: "Labels",
	NoRunners: "No runner is here: none yet, or none that your token may see. `drover env put ID -image IMAGE -pool-size 2` keeps some warm.",

	Executions: "Executions", AllExecutions: "All its executions, with search",
	NoExecutions: "No execution is here: none yet, or none in the last 15 minutes.",
	Runs:         "runs", Exited: "exit %d", LimitWall: "Time limit", LimitMemory: "Memory limit",
	Cut: "The first %s are shown.",

	Follows: "what it writes is shown as it writes it; it does not wait for this page", Lost: "No connection: it is tried again.",
	Refused: "This is not shown any more: the execution is gone, or your token may not see it.", AllShown: "all that is kept is shown",
	Partial: "it began under an earlier server: what came before has no times of its own", Play: "Replay", Pause: "Pause",
	Missed: "%s were missed: they came too fast", Before: "%s before are not shown", Speed: "Speed", AtOnce: "Show all",
	Seek: "Time of the replay in milliseconds", Cast: "Download as asciicast", CastLater: "It still runs: an asciicast is made when it ended.",
	Download: "Download",

	Parts: "Parts of the runner", Files: "Files", Terminal: "Terminal", Root: "working directory", Upload: "Upload",
	UploadTo: "Files to upload here", NoFiles: "No file is here.", Size: "Size", Mode: "Mode", Owner: "Owner", Modified: "Modified",
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

	NoOutput: "What it wrote is for who may execute in its namespace.",
	Sentences: map[execution.Cause]string{
		execution.CauseExited:      "It ended by itself with code {code}, after {took}.",
		execution.CauseSignalled:   "Signal {signal} ended it, after {took}.",
		execution.CauseTimeout:     "It was killed after {took}, which is all the time that it may take.",
		execution.CauseOOM:         "It was killed for memory after {took}, when it had {memory}.",
		execution.CauseOutputLimit: "It was killed after {took}, as it wrote more than it may: {output}.",
		execution.CauseCPULimit:    "It was killed after {took}, as it took more CPU time than it may: {cpu}.",
		execution.CauseKilled:      "It was killed on request, after {took}.",
		execution.CauseRunnerGone:  "It ended with its runner, after {took}.",
		execution.CauseStartFailed: "It did not start.",
	},

	EnvironmentColumns: []string{
		"Environment", "Image", "Warm", "Starting", "Queued", "Claimed", "Waiting", "Last hour", "Claim p50 / p95 / p99",
		"First byte p50 / p95 / p99",
		"Last error",
	},
	RunnerColumns:    []string{"Runner", "Status", "Environment", "Node", "Claimed", "Labels"},
	FileColumns:      []string{"Name", "Size", "Mode", "Owner", "Modified"},
	ExecutionColumns: []string{"Execution", "Status", "Started", "Took", "Memory", "Runner", "Command"},
}
