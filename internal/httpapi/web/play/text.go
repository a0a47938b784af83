package play

// Text is every text of the playground, in one place for translators.
var Text = struct {
	Playground, PlayMore, PlayForbidden, Environment, CommandMore, Stdin, StdinMore, Files, File, FileName, FileText, AddFile,
	Remove, Run, Stop,
	Share, Shared, Damaged, Stdout, Stderr, NoOutput, Result, NoEnvironment, NoEnvironmentMore, MakeEnvironment string

	Exit, Cause, Wall, CPU, Memory, Claimed, FirstByte, Ended, Written, Truncated, Reason, Starting string

	Causes, PlayModes map[string]string

	PlayMode, TypeLine, TypeLineMore, SendLine, EndInput, Runs, FirstLine string
}{
	Playground: "Playground", PlayMore: "Runs a program in a warm runner that is thrown away afterwards.",
	PlayForbidden: "It takes the rights to claim runners and to execute in them (claim-runner, execute) in an environment's namespace.",
	Environment:   "Environment", CommandMore: "a line for the runner's shell",
	Stdin: "Input (stdin)", StdinMore: "given ahead",
	Files: "Files", File: "File", FileName: "Name", FileText: "Content", AddFile: "Add a file", Remove: "Remove",
	Run: "Run", Stop: "Stop", Share: "Copy a link", Shared: "The link is copied: it holds the program, nothing is stored.",
	Damaged: "The link is damaged: it holds no program.",
	Stdout:  "stdout", Stderr: "stderr", NoOutput: "nothing", Result: "Result",
	NoEnvironment:     "There is no environment yet",
	NoEnvironmentMore: "An environment keeps warm runners of an image. One on this machine's own files, read-only, is enough to begin.",
	MakeEnvironment:   "Make environment “playground”",

	Exit: "Exit", Cause: "Ended", Wall: "Ran for", CPU: "CPU time", Memory: "Peak memory", Claimed: "Runner after",
	FirstByte: "First byte after",
	Ended:     "All after", Written: "Output", Truncated: "Some of the output is not shown: it was too long.", Reason: "Why",
	Starting: "claiming a runner",

	Causes: map[string]string{
		"exited": "by itself", "signalled": "by a signal", "timeout": "killed: out of time", "oom": "killed: out of memory",
		"output_limit": "killed: too much output", "cpu_limit": "killed: out of CPU time", "killed": "killed on request",
		"runner_gone": "with its runner", "start_failed": "it did not start",
	},

	PlayMode: "Then", TypeLine: "Type to the program", TypeLineMore: "a line at a time", SendLine: "Send", EndInput: "End of input (Ctrl-D)",
	Runs:      "runs",
	FirstLine: `read name; echo "hello $name"; id -u >&2`,
	PlayModes: map[string]string{
		"given": "the input ends", "typed": "I type more, line by line", "terminal": "it runs in a terminal",
	},
}
