package herd

import "github.com/drover-project/drover/internal/httpapi/web/parts"

// deed is what a form asks for, in words: of which kind of page it is, what its button says, and what is said after it. What is
// asked before has the name of what it is about in %s; "" asks nothing.
type deed struct{ of, button, done, sure string }

// steerText is the texts of what can be done with environments, runners and executions.
var steerText = struct {
	Actions                                       map[string]deed
	BadForm, NoAction, Size, NoSize, Idle, NoIdle string
}{
	Actions: map[string]deed{
		"size":   {"environments", "Change", "The size of the pool is changed: runners come or go.", ""},
		"extend": {"runners", "Change", "The runner's idle time begins anew, with what it may be idle now.", ""},
		"release": {
			"runners", "Release", "The runner is released: it is thrown away.",
			"Release the runner %s? What runs in it ends, and its files are gone.",
		},
		"interrupt": {"executions", "Interrupt", "SIGINT is sent, as Ctrl-C does: many programs end by it.", ""},
		"kill": {
			"executions", "Kill", "The execution is killed, with all that it started.",
			"Kill the execution %s, with all that it started?",
		},
	},
	BadForm: parts.BadForm, NoAction: "There is no such action", Size: "Warm runners to keep",
	NoSize: "size: want a number of runners, 0 or more, got", Idle: "May be idle for",
	NoIdle: `idle time: want a duration such as "30m" or "2h", or 0 for no end, got`,
}
