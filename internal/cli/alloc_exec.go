package cli

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
	"github.com/drover-project/drover/internal/clock"
)

type allocExecFlags struct {
	chosen
	stdin, tty bool
	escape     escape
}

func (a *App) allocExecCommand() *cobra.Command {
	f := &allocExecFlags{}
	var tty, noTTY bool
	c := leaf("exec ALLOC COMMAND [ARG…]", "Run a command in a task of an allocation", 1, -1, func(ctx context.Context, args []string) error {
		t := a.console()
		f.tty = tty || t != nil && !noTTY
		return a.allocExec(ctx, f, t, args)
	})
	with(c, `Runs the command in the task and exits with its code. From a terminal it gets one too, with its size; -T prevents it.
The command's own flags need no --.

`+wayOut, "drover alloc exec 3f2a sh\ndrover alloc exec -task web -job shop cat /etc/hostname\necho data | drover alloc exec -T 3f2a sh -c 'wc -c'")
	c.Annotations = map[string]string{passThrough: afterFirst}
	c.Flags().SetInterspersed(false)
	f.bind(c.Flags())
	c.Flags().BoolVarP(&f.stdin, "stdin", "i", true, "hand on stdin")
	c.Flags().BoolVarP(&tty, "tty", "t", false, "give the command a terminal; default: if there is one here")
	f.escape.bind(c.Flags())
	c.Flags().BoolVarP(&noTTY, "no-tty", "T", false, "give it none")
	return c
}

func (a *App) allocExec(ctx context.Context, f *allocExecFlags, t *console, args []string) error {
	c, err := a.asks()
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
		return drover.Errorf(drover.Invalid, "name a command: drover alloc exec %s sh", short(v.ID))
	}
	conn, err := c.dialExec(ctx, v.ID, task, argv, f.tty)
	if err != nil {
		return err
	}
	x := &allocExecution{app: a, conn: conn}
	return x.run(ctx, f, t)
}

func (c *api) dialExec(ctx context.Context, id, task string, argv []string, tty bool) (*websocket.Conn, error) {
	command, err := json.Marshal(argv)
	if err != nil {
		return nil, err
	}
	q := url.Values{"task": {task}, "command": {string(command)}, "tty": {strconv.FormatBool(tty)}}
	o := &websocket.DialOptions{HTTPClient: c.http, HTTPHeader: map[string][]string{}}
	c.authorize(o.HTTPHeader)
	address := "ws" + strings.TrimPrefix(c.url("/v1/client/allocation/"+id+"/exec", q), "http") // https → wss
	conn, _, err := websocket.Dial(ctx, address, o)                                             //nolint:bodyclose // the library closes it
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	conn.SetReadLimit(16 << 20)
	return conn, nil
}

// execution is one exec's connection (reference/nomad.md section 5.1).
type allocExecution struct {
	app  *App
	conn *websocket.Conn
	mu   sync.Mutex // guards writes' order
}

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

type execSize struct {
	Height uint16 `json:"height"`
	Width  uint16 `json:"width"`
}

func (x *allocExecution) send(ctx context.Context, f execFrame) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.conn.Write(ctx, websocket.MessageText, text)
}

// execHeartbeat is how often we say that we are there.
const execHeartbeat = 10 * time.Second

func (x *allocExecution) run(ctx context.Context, f *allocExecFlags, t *console) error {
	ctx, leave := leavable(ctx)
	defer leave()
	defer x.conn.CloseNow() //nolint:errcheck // nothing is left to be said
	send := func(p []byte) error { return x.send(ctx, execFrame{Stdin: &execBytes{Data: p}}) }
	if f.tty && t != nil {
		if f.stdin {
			if err := t.raw(); err != nil {
				return err
			}
			defer t.restore()
			send = (&keys{escape: f.escape, send: send, leave: leave}).take
		}
		resize := func(s execution.WindowSize) { _ = x.send(ctx, execFrame{TTYSize: &execSize{s.Rows, s.Cols}}) } // reading tells of a broken connection
		resize(t.size())
		go t.resized(ctx, resize) // ends with ctx
	}
	end := func() error { return x.send(ctx, execFrame{Stdin: &execBytes{Close: true}}) }
	if f.stdin {
		go pumpInput(x.app.In, send, end) // ends with stdin, or the process
	} else if err := end(); err != nil {
		return drover.Errorf(drover.Unavailable, "sending to the agent: %w", err)
	}
	go func() { // ends with ctx
		for clock.Sleep(ctx, clock.Wall{}, execHeartbeat) {
			_ = x.send(ctx, execFrame{}) // reading tells of a broken connection
		}
	}()
	code, err := x.receive(ctx)
	t.restore()
	switch {
	case err != nil:
		return err
	case code != 0:
		return &exitError{code: code}
	}
	return nil
}

// receive prints what comes until the exit code does.
func (x *allocExecution) receive(ctx context.Context) (code int, err error) {
	for {
		_, text, err := x.conn.Read(ctx)
		var closed websocket.CloseError
		switch {
		case errors.As(err, &closed) && closed.Reason != "":
			return 0, drover.Errorf(closeCode(closed), "%s", closed.Reason)
		case err != nil && ctx.Err() != nil:
			return 0, &exitError{code: interruptCode(ctx)}
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

// closeCode is the code behind a close frame: 1008 is the caller's fault, all else ours.
func closeCode(c websocket.CloseError) drover.Code {
	switch {
	case c.Code == websocket.StatusPolicyViolation && strings.Contains(c.Reason, "not found"):
		return drover.NotFound
	case c.Code == websocket.StatusPolicyViolation:
		return drover.Invalid
	}
	return drover.Internal
}
