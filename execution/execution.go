package execution

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/drover-project/drover"
)

// Stream names one of an execution's byte streams.
type Stream uint8

// The streams.
const (
	Stdin Stream = iota
	Stdout
	Stderr
)

// WindowSize is a terminal's size in characters.
type WindowSize struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// Spec is one command to run in a runner or task.
type Spec struct {
	ID         string            `json:"id,omitempty"` // chosen by the caller; unique in the runner
	Argv       []string          `json:"argv"`         // run by execve, no shell in between
	Env        map[string]string `json:"env,omitempty"`
	Secrets    []Secret          `json:"secrets,omitempty"`
	Values     []string          `json:"-"`                 // of the secrets, on their way to the runner only
	HideEnv    string            `json:"hideEnv,omitempty"` // the task's variables whose names begin so are not inherited
	WorkDir    string            `json:"workDir,omitempty"`
	User       string            `json:"user,omitempty"`       // name or uid[:gid], looked up in the runner; "" = its default user
	Privileged bool              `json:"privileged,omitempty"` // run as the runner's root
	TTY        bool              `json:"tty,omitempty"`        // stderr comes with stdout, as terminals have it
	TTYStderr  bool              `json:"ttyStderr,omitempty"`  // with TTY: keep stderr apart on a pipe, if the backend can
	Size       WindowSize        `json:"size,omitzero"`        // default 80x24
	Stdin      bool              `json:"stdin,omitempty"`      // false: stdin is /dev/null
	Limits     drover.Limits     `json:"limits,omitzero"`
	KeepTree   bool              `json:"keepTree,omitempty"` // do not kill what the command left behind when it exits
	// Detach keeps it running without a reader for this long; 0 = killed when its last session closes. -1 = for ever.
	Detach time.Duration `json:"detach,omitempty"`
	// Keep is how long the runner keeps the output after its end was read: whoever read it may be gone before others had it. The
	// newest 2 MB of all that a runner keeps so stay. The execution service sets it.
	Keep time.Duration `json:"-"`
}

// Secret is an item of a variable that the command gets, in its environment or as a file. Who asks for it must be allowed to read the
// variable. Its value is in no receipt, event or record. Instead of an item it may be a token that says who the command is.
type Secret struct {
	Namespace string `json:"namespace,omitempty"` // of the variable; default: the runner's
	Path      string `json:"path,omitempty"`      // of the variable
	Key       string `json:"key,omitempty"`       // of its item
	// Identity, instead of path and key, is the audience of a signed token (JWT) of the execution: one that its environment allows. It is
	// always masked.
	Identity string `json:"identity,omitempty"`
	Env      string `json:"env,omitempty"` // the environment variable that it becomes
	// File is the name of a file in the folder that the environment variable DROVER_SECRETS_DIR names: in memory, for the command's
	// user alone, and removed when the command ends.
	File string `json:"file,omitempty"`
	// Mask has *** written in place of the value, wherever the command writes it to stdout or stderr. Bytes that may begin it wait for
	// those after them.
	Mask bool `json:"mask,omitempty"`
}

// Cause says why an execution ended.
type Cause string

// The causes.
const (
	CauseExited      Cause = "exited"
	CauseSignalled   Cause = "signalled"
	CauseTimeout     Cause = "timeout"
	CauseOOM         Cause = "oom"
	CauseOutputLimit Cause = "output_limit"
	CauseCPULimit    Cause = "cpu_limit"
	CauseKilled      Cause = "killed"      // by request
	CauseRunnerGone  Cause = "runner_gone" // the runner ended under it
	CauseStartFailed Cause = "start_failed"
)

// Receipt says how an execution ended and what it used. Fields that could not be measured are zero.
type Receipt struct {
	ExecutionID string        `json:"executionId"`
	ExitCode    int           `json:"exitCode"`         // 128+n for signal n; never 0 unless Cause is exited
	Signal      int           `json:"signal,omitempty"` //
	Cause       Cause         `json:"cause"`            //
	Error       string        `json:"error,omitempty"`  // for start_failed and others: the reason; or what was not as asked for
	StartedAt   time.Time     `json:"startedAt,omitzero"`
	Wall        time.Duration `json:"wall"` // ns
	// UserCPU and SystemCPU are the whole tree's, in ns. On cgroup v1 without a limit of CPU time, and where there are no groups,
	// some processes that nobody waited for are left out. They left the command's session while others ran beside it.
	UserCPU     time.Duration `json:"userCpu"`
	SystemCPU   time.Duration `json:"systemCpu"`
	PeakMemory  int64         `json:"peakMemory"`
	StdoutBytes int64         `json:"stdoutBytes"` // written by the program, delivered or not
	StderrBytes int64         `json:"stderrBytes"`
	Truncated   bool          `json:"truncated,omitempty"` // some of these bytes were not delivered
}

// Execution is an execution as listed.
type Execution struct {
	ID       string   `json:"id"`
	RunnerID string   `json:"runnerId,omitempty"`
	AllocID  string   `json:"allocationId,omitempty"`
	Task     string   `json:"task,omitempty"`
	Spec     Spec     `json:"spec"`
	Pid      int      `json:"pid,omitempty"`
	Running  bool     `json:"running"`
	Receipt  *Receipt `json:"receipt,omitempty"`
	// Taken: its end was read, and the runner only keeps its output. Nodes say so.
	Taken bool `json:"-"`
}

// Offsets are positions in the output streams, in bytes from the start.
type Offsets struct {
	Stdout int64 `json:"stdout"`
	Stderr int64 `json:"stderr"`
}

// Frame is what a Session delivers: exactly one of Started, Data or Receipt.
type Frame struct {
	Started bool     // the command was started: Pid is set
	Pid     int      //
	Stdin   *int64   // of Started: how many bytes of stdin the command was given so far; nil: it is not known
	Stream  Stream   // of Data
	Offset  int64    // of Data's first byte
	Data    []byte   // valid until the next call of Next
	Skipped bool     // bytes before Offset were asked for but are no longer kept; Data may be empty
	Receipt *Receipt // the last frame; all output came before it
}

// Session is one reader's and writer's connection to an execution. Next is called by one goroutine at a time; the
// other methods may be called beside it. A slow reader slows the program (unless it is detached).
type Session interface {
	// Next returns the next frame. After the receipt it returns io.EOF. Errors: Gone when the runner ended.
	Next(ctx context.Context) (Frame, error)
	// Write sends stdin; it blocks while the program does not read.
	Write(ctx context.Context, p []byte) error
	CloseStdin(ctx context.Context) error
	Resize(ctx context.Context, size WindowSize) error
	// Signal sends a signal by name ("SIGINT", "INT") to the execution's process group; "KILL" ends the whole tree.
	Signal(ctx context.Context, name string) error
	// Close detaches. What becomes of the execution is Spec.Detach's matter. A receipt that was read is kept for other
	// readers until Close: first write down what must not be lost.
	Close() error
}

// LetGo is Close for a user who may not have got the receipt, as it goes before it knows of an end. A session that can tell has
// the receipt kept for the next user.
func LetGo(s Session) {
	if u, ok := s.(interface{ Untaken() }); ok {
		u.Untaken()
		return
	}
	_ = s.Close() // detaching cannot fail
}

// FileInfo describes a file in a runner. Names are raw bytes as the kernel has them.
type FileInfo struct {
	Path       string    `json:"path"` // relative to the listed directory
	Type       string    `json:"type"` // ls's letter: - d l p s c b
	Size       int64     `json:"size"`
	Mode       uint32    `json:"mode"` // permission bits incl. setuid, setgid, sticky
	UID        int       `json:"uid"`
	GID        int       `json:"gid"`
	Owner      string    `json:"owner"`
	Group      string    `json:"group"`
	ModTime    time.Time `json:"modTime"`
	LinkTarget string    `json:"linkTarget,omitempty"`
}

// FileRequest names a file in a runner. Relative paths start at the runner's working directory.
type FileRequest struct {
	Path       string `json:"path"`
	Recursive  bool   `json:"recursive,omitempty"`
	Privileged bool   `json:"privileged,omitempty"` // as the runner's root; else as its default user
	Offset     int64  `json:"offset,omitempty"`     // for reads
	Length     int64  `json:"length,omitempty"`     // for reads; 0 = to the end
}

// FileChange is one step of an Apply: exactly one of Delete, Mkdir or Write.
type FileChange struct {
	Path   string `json:"path"`
	Delete bool   `json:"delete,omitempty"` // recursively; a final "*" or "./*" matches as in a shell, without dotfiles
	Mkdir  bool   `json:"mkdir,omitempty"`
	Write  bool   `json:"write,omitempty"` // not needed where there is Data or Text
	Data   []byte `json:"data,omitempty"`
	// Text is Data for those who write JSON by hand; PrepareChanges makes Data of it.
	Text  *string `json:"text,omitempty"`
	Mode  uint32  `json:"mode,omitempty"`  // 0: 0744 for files, 01777 for directories (Poseidon's)
	Owner string  `json:"owner,omitempty"` // "" = root
}

// PrepareChanges completes changes, and checks what can be checked before any of them is made: what has content is
// written. Errors: Invalid, naming the change.
func PrepareChanges(changes []FileChange) error {
	for i := range changes {
		c := &changes[i]
		if c.Text != nil {
			if c.Data != nil {
				return drover.Errorf(drover.Invalid, "files[%d]: both text and data: want one of them", i)
			}
			c.Data, c.Text = []byte(*c.Text), nil
		}
		c.Write = c.Write || c.Data != nil
		kinds := 0
		for _, is := range []bool{c.Delete, c.Mkdir, c.Write} {
			if is {
				kinds++
			}
		}
		switch {
		case kinds != 1 || c.Path == "" || strings.ContainsRune(c.Path, 0):
			return drover.Errorf(drover.Invalid, "files[%d]: want a path, and exactly one of text, data (base64), mkdir and delete", i)
		case c.Mode > 0o7777:
			return drover.Errorf(drover.Invalid, "files[%d].mode %d: want permission bits, at most %d", i, c.Mode, 0o7777)
		}
	}
	return nil
}

// Files is what can be done to the files of a task that runs under a supervisor. All of it happens inside the
// runner, so that no path can lead out. Errors: NotFound, Forbidden, Invalid, Gone.
type Files interface {
	List(ctx context.Context, r FileRequest) ([]FileInfo, error)
	// Read opens a file; the info is that of the opened file (links followed inside the runner).
	Read(ctx context.Context, r FileRequest) (FileInfo, io.ReadCloser, error)
	// Apply makes the changes in order, as the runner's root; each file is replaced atomically.
	Apply(ctx context.Context, changes []FileChange) error
	// Write replaces one file atomically with what r yields.
	Write(ctx context.Context, change FileChange, r io.Reader) error
	// Archive streams the directory as tar; Extract unpacks one.
	Archive(ctx context.Context, r FileRequest) (io.ReadCloser, error)
	Extract(ctx context.Context, r FileRequest, tar io.Reader) error
}
