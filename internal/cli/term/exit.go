package term

// Exit codes that scripts can rely on.
const (
	ExitFailure  = 1
	ExitUsage    = 2
	ExitNotFound = 3
	ExitUnplaced = 4 // a job was registered but not all of it could be placed
	ExitWeak     = 5 // what was examined works, but not through everything that may come

	// 128 and the number of SIGPIPE, as a shell tells it.
	ExitPipe = 141 // nobody reads what we print
)

// ExitError ends a command with an exit code of its own. Without Err nothing is printed, as what happened was told
// before.
type ExitError struct {
	Code int
	Err  error
}

// Error returns the message.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}
