package herd

// execText is the texts of the pages of environments, runners and executions.
var execText = struct {
	Warm, Starting, Queued, Claimed, Waiting, Image, Driver, Network, IdleTimeout, LastError, Yes, No       string
	Runner, Runners, NoRunners, Allocation, ClaimedAt, Labels                                               string
	Executions, ExecutionsMore, NoExecutions, Runs, Exited, LimitWall, LimitMemory, Follow, FollowMore, Cut string

	Status, Environment, Node, Command, Memory, CPU, Result, Stdout, Stderr, NewestOf string

	RunnerColumns, ExecutionColumns []string
}{
	Warm: "Warm of size", Starting: "Starting", Queued: "Without a place", Claimed: "Claimed", Waiting: "Claims that wait",
	Image: "Image", Driver: "Driver", Network: "Network", IdleTimeout: "Idle timeout", LastError: "Why runners do not come", Yes: "yes",
	No: "no",

	Runner: "Runner", Runners: "Runners", Allocation: "Allocation", ClaimedAt: "Claimed (UTC)", Labels: "Labels",
	NoRunners: "No runner is here: none yet, or none that your token may see. `drover env put ID -image IMAGE -pool-size 2` keeps some warm.",

	Executions: "Executions", ExecutionsMore: "What runs, and what ended in the last 15 minutes, in the %d runners that were claimed last.",
	NoExecutions: "No execution is here: none yet, none in runners that are still claimed, or none that your token may see.",
	Runs:         "runs", Exited: "exit %d", LimitWall: "Time limit", LimitMemory: "Memory limit", Follow: "Show what it writes",
	FollowMore: "who reads along too slowly may slow the program down",
	Cut:        "The first %s are shown. GET /v1/execution/ID/output has all that is kept.",

	Status: "Status", Environment: "Environment", Node: "Node", Command: "Command", Memory: "Memory", CPU: "CPU", Result: "Result",
	Stdout: "stdout", Stderr: "stderr", NewestOf: "The newest %d of %d.",

	RunnerColumns:    []string{"Runner", "Status", "Environment", "Node", "Claimed (UTC)", "Labels"},
	ExecutionColumns: []string{"Execution", "Status", "Started (UTC)", "Took", "Memory", "Runner", "Command"},
}
