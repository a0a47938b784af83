package web

// text is every text of the page, in one place for translators.
var text = struct {
	Skip, Menu, Pages, More, SignIn, SignInMore, SignInOther, SignOut, Token, NoToken, NotSignedIn, Dark, Light string

	Failed, Forbidden, NoPage, NoPageMore string

	Playground, PlayMore, PlayForbidden, Environment, Command, CommandMore, Stdin, StdinMore, Files, File, FileName, FileText, AddFile,
	Remove, Run, Stop,
	Share, Shared, Damaged, Stdout, Stderr, NoOutput, Result, NoEnvironment, NoEnvironmentMore, MakeEnvironment, BadForm string

	Exit, Cause, Wall, CPU, Memory, Claimed, FirstByte, Ended, Written, Truncated, Reason, Starting string

	Causes, PlayModes map[string]string

	PlayMode, TypeLine, TypeLineMore, SendLine, EndInput, Runs, FirstLine string

	Job, Node, Allocations, Groups, Group, Task, Status, Namespace, Type, Version, Priority, Wanted, Made, ID, Nothing,
	NewestOf string

	GroupColumns []string
}{
	Skip: "Skip to content", Menu: "Menu", Pages: "Pages", More: "More",
	SignIn: "Sign in", SignOut: "Sign out", SignInOther: "Sign in with another token", Token: "Token",
	SignInMore: "The secret of a token of this cluster, or the agent's api_token. It stays in a cookie that no script can read, " +
		"until the browser closes.",
	NoToken:     "The token is empty.",
	NotSignedIn: "Not signed in", Dark: "Dark", Light: "Light",

	Failed: "That did not work", Forbidden: "Your token may not do this",
	NoPage: "There is no such page", NoPageMore: "The address may be mistyped, or of another version. The pages that there are stand above.",

	Playground: "Playground", PlayMore: "Runs a program in a warm runner that is thrown away afterwards.",
	PlayForbidden: "It takes the rights to claim runners and to execute in them (claim-runner, execute) in an environment's namespace.",
	Environment:   "Environment", Command: "Command", CommandMore: "a line for the runner's shell",
	Stdin: "Input (stdin)", StdinMore: "given ahead",
	Files: "Files", File: "File", FileName: "Name", FileText: "Content", AddFile: "Add a file", Remove: "Remove",
	Run: "Run", Stop: "Stop", Share: "Copy a link", Shared: "The link is copied: it holds the program, nothing is stored.",
	Damaged: "The link is damaged: it holds no program.",
	Stdout:  "stdout", Stderr: "stderr", NoOutput: "nothing", Result: "Result",
	NoEnvironment:     "There is no environment yet",
	NoEnvironmentMore: "An environment keeps warm runners of an image. One on this machine's own files, read-only, is enough to begin.",
	MakeEnvironment:   "Make environment “playground”",
	BadForm:           "The form could not be read",

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

	Job: "Job", Node: "Node", Allocations: "Allocations", Groups: "Groups",
	Group: "Group",
	Task:  "Task", Status: "Status", Namespace: "Namespace", Type: "Type", Version: "Version", Priority: "Priority", Wanted: "Wanted",
	Made: "Made", ID: "Id", Nothing: "There is nothing here yet.", NewestOf: "The newest %d of %d.",

	GroupColumns: []string{"Group", "Wanted", "Allocations", "Tasks"},
}
