package alloc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/clock"
)

// execFlags are the flags of "drover alloc exec". tty is not a flag's value but the answer: whether a terminal is
// asked for.
type execFlags struct {
	chosen
	stdin, tty bool
	escape     term.Escape
}

// execCommand is "drover alloc exec". Flags stand before the allocation: all behind it belongs to the command.
func execCommand(app *term.App) *cobra.Command {
	f := &execFlags{}
	var tty, noTTY bool
	run := func(ctx context.Context, app *term.App, args []string) error {
		t := app.Console()
		f.tty = tty || t != nil && !noTTY
		return exec(ctx, app, f, t, args)
	}
	c := term.Command(app, "exec ALLOC COMMAND [ARG…]", "Run a command in a task of an allocation", 1, -1, run)
	term.Describe(c, `Runs the command in the task and exits with its code. From a terminal it gets one too, with its size; -T prevents it.
The command's own flags need no --.

`+term.EscapeHelp, `drover alloc exec 3f2a sh
drover alloc exec -task web -job shop cat /etc/hostname
echo data | drover alloc exec -T 3f2a sh -c 'wc -c'`)
	c.Annotations = map[string]string{term.PassThrough: term.AfterFirst}
	c.Flags().SetInterspersed(false)
	f.bind(c.Flags())
	c.Flags().BoolVarP(&f.stdin, "stdin", "i", true, "hand on stdin")
	c.Flags().BoolVarP(&tty, "tty", "t", false, "give the command a terminal; default: if there is one here")
	f.escape.Bind(c.Flags())
	c.Flags().BoolVarP(&noTTY, "no-tty", "T", false, "give it none")
	return c
}

// exec finds the task, dials its node through the server, and runs the session. t is the terminal here, or nil.
// Errors: Invalid without a command; NotFound; the API's; *term.ExitError with the command's code.
func exec(ctx context.Context, app *term.App, f *execFlags, t *term.Console, args []string) error {
	c, err := app.Nomad()
	if err != nil {
		return err
	}
	v, task, argv, err := f.find(ctx, c, args)
	if err != nil {
		return err
	}
	if len(argv) > 0 && argv[0] == "--" {
		argv = argv[1:]
	}
	if len(argv) == 0 {
		return drover.Errorf(drover.Invalid, "name a command: drover alloc exec %s sh", term.ShortID(v.ID))
	}
	conn, err := dialExec(ctx, c, v.ID, task, argv, f.tty)
	if err != nil {
		return err
	}
	x := &session{app: app, conn: conn}
	return x.run(ctx, f, t)
}

// dialExec opens the WebSocket of Nomad's exec API. The command is JSON in the query, since it is a list of words.
// Errors: those of dial.
func dialExec(ctx context.Context, c *api.Client, id, task string, argv []string, tty bool) (*websocket.Conn, error) {
	command, err := json.Marshal(argv)
	if err != nil {
		return nil, err
	}
	q := url.Values{"task": {task}, "command": {string(command)}, "tty": {strconv.FormatBool(tty)}}
	return dial(ctx, c, "/v1/client/allocation/"+id+"/exec", q)
}

// session is one exec connection: text frames of JSON in both directions, as Nomad has them. Stdin, resizes and
// heartbeats are sent by different goroutines.
type session struct {
	app  *term.App
	conn *websocket.Conn
	mu   sync.Mutex // guards writes' order
}

// execBytes is a piece of a stream, in base64 on the wire; Close says that nothing more of it comes.
type execBytes struct {
	Data  []byte `json:"data,omitempty"`
	Close bool   `json:"close,omitempty"`
}

// execFrame is a frame in either direction; at most one field is set.
type execFrame struct {
	Stdin   *execBytes `json:"stdin,omitempty"`
	Stdout  *execBytes `json:"stdout,omitempty"`
	Stderr  *execBytes `json:"stderr,omitempty"`
	TTYSize *execSize  `json:"tty_size,omitempty"`
	Exited  bool       `json:"exited,omitempty"`
	Result  *struct {
		ExitCode int `json:"exit_code"`
	} `json:"result,omitempty"`
}

// execSize is a terminal's size in characters.
type execSize struct {
	Height uint16 `json:"height"`
	Width  uint16 `json:"width"`
}

// send writes one frame. Several goroutines send, so the lock keeps their frames in order.
func (x *session) send(ctx context.Context, f execFrame) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.conn.Write(ctx, websocket.MessageText, text)
}

// execHeartbeat is how often an empty frame is sent, as Nomad's own client does: proxies close connections that are
// silent.
const execHeartbeat = 10 * time.Second

// run hands our streams on until the command ends, and restores the terminal at every end. Errors: *term.ExitError
// for a code other than 0; those of receive.
func (x *session) run(ctx context.Context, f *execFlags, t *term.Console) error {
	ctx, leave := term.Leavable(ctx)
	defer leave()
	defer x.conn.CloseNow() //nolint:errcheck // nothing is left to be said
	send := func(p []byte) error { return x.send(ctx, execFrame{Stdin: &execBytes{Data: p}}) }
	if f.tty && t != nil {
		if f.stdin {
			if err := t.Raw(); err != nil {
				return err
			}
			defer t.Restore()
			send = (&term.Keys{Escape: f.escape, Send: send, Leave: leave}).Type
		}
		// reading tells of a broken connection
		resize := func(s execution.WindowSize) { _ = x.send(ctx, execFrame{TTYSize: &execSize{s.Rows, s.Cols}}) }
		resize(t.Size())
		go t.OnResize(ctx, resize) // ends with ctx
	}
	// Without -i stdin is closed at once, so that a command that reads it does not wait for ever.
	end := func() error { return x.send(ctx, execFrame{Stdin: &execBytes{Close: true}}) }
	if f.stdin {
		go term.PumpInput(x.app.In, send, end) // ends with stdin, or the process
	} else if err := end(); err != nil {
		return drover.Errorf(drover.Unavailable, "sending to the agent: %w", err)
	}
	go func() { // ends with ctx
		for clock.Sleep(ctx, clock.Wall{}, execHeartbeat) {
			_ = x.send(ctx, execFrame{}) // reading tells of a broken connection
		}
	}()
	code, err := x.receive(ctx)
	t.Restore()
	switch {
	case err != nil:
		return err
	case code != 0:
		return &term.ExitError{Code: code}
	}
	return nil
}

// receive prints output until the exit code comes, and returns that. Errors: the code of the close frame's reason;
// *term.ExitError for an interruption; Unavailable for a broken connection; those of writing.
func (x *session) receive(ctx context.Context) (code int, err error) {
	for {
		_, text, err := x.conn.Read(ctx)
		var closed websocket.CloseError
		switch {
		case errors.As(err, &closed) && closed.Reason != "":
			return 0, drover.Errorf(closeCode(closed), "%s", closed.Reason)
		case err != nil && ctx.Err() != nil:
			return 0, &term.ExitError{Code: term.InterruptCode(ctx)}
		case err != nil:
			return 0, drover.Errorf(drover.Unavailable, "the connection to the agent broke before the command ended: %w", err)
		}
		var f execFrame
		if err := json.Unmarshal(text, &f); err != nil {
			return 0, fmt.Errorf("reading a frame: %w", err)
		}
		if f.Stdout != nil {
			_, err = x.app.Out.Write(f.Stdout.Data)
		}
		if f.Stderr != nil {
			_, err = x.app.Err.Write(f.Stderr.Data)
		}
		switch {
		case err != nil:
			return 0, fmt.Errorf("printing: %w", err)
		case f.Exited && f.Result != nil:
			return f.Result.ExitCode, nil
		case f.Exited:
			return 0, nil
		}
	}
}

// closeCode returns the error code behind a close frame. Status 1008 (policy violation) is the caller's fault; its
// text tells a missing thing from a wrong request. Everything else is the agent's.
func closeCode(c websocket.CloseError) drover.Code {
	switch {
	case c.Code == websocket.StatusPolicyViolation && strings.Contains(c.Reason, "not found"):
		return drover.NotFound
	case c.Code == websocket.StatusPolicyViolation:
		return drover.Invalid
	}
	return drover.Internal
}
