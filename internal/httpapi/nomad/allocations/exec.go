package allocations

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/policy"
)

const (
	execPing     = 10 * time.Second // how often a peer is asked for a sign of life
	execSilence  = time.Minute      // after this without one it is gone
	execMaxFrame = 1 << 20          // bytes of one frame from the client
	execLinger   = 30 * time.Second // for the client to read all and to close first
	execQueue    = 16               // stdin frames read ahead, so that a close behind them is seen
)

// execAllocation answers the exec websocket with the command of the query.
func (f *face) execAllocation(w http.ResponseWriter, r *http.Request) error {
	return f.answerExec(w, r, wanted{r.PathValue("id"), commandOf})
}

// wanted is what an exec websocket is for.
type wanted struct {
	allocation string // its id
	// argv returns the command for a task of the allocation. Errors: Invalid, NotFound.
	argv func(r *http.Request, a *drover.Allocation, task string) ([]string, error)
}

// answerExec serves the websocket: the upgrade comes first, errors come as close frames: 1011 for ours, 1008 for the client's.
func (f *face) answerExec(w http.ResponseWriter, r *http.Request, want wanted) error {
	up := websocket.Upgrader{ReadBufferSize: 4 << 10, WriteBufferSize: 32 << 10, HandshakeTimeout: 10 * time.Second}
	conn, err := up.Upgrade(w, r, nil)
	if err != nil {
		return nil // the upgrader has answered
	}
	c := &execConn{Conn: conn, face: f}
	defer func() { _ = conn.Close() }() // nothing is left to be said
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	if err := f.exec(ctx, cancel, c, r, want); err != nil {
		c.closeWith(err)
	}
	return nil
}

// exec starts the command and serves it until the end. Its errors become the close frame: the token comes first, so
// that a client without one learns nothing about allocations.
func (f *face) exec(ctx context.Context, cancel context.CancelCauseFunc, c *execConn, r *http.Request, want wanted) error {
	c.SetReadLimit(execMaxFrame)
	if err := c.identify(r); err != nil {
		return err
	}
	if f.DisableExec {
		return drover.Errorf(drover.Forbidden, "exec is disabled on this agent")
	}
	a, err := f.allocationOf(r, want.allocation, policy.AllocExec)
	if err != nil {
		return err
	}
	node, err := f.Nodes.Workloads(a.NodeID)
	if err != nil {
		return err
	}
	task, spec, err := f.execRequest(r, a, want)
	if err != nil {
		return err
	}
	if onNode(a, task) {
		if err := httpapi.Allow(ctx, a.Namespace, policy.AllocNodeExec); err != nil {
			return err
		}
	}
	session, err := node.StartExecution(ctx, a.ID, task, spec)
	if err != nil {
		return err
	}
	c.serve(ctx, cancel, session, r.Context().Done())
	return nil
}

// onNode reports whether the task sees the node's own file system: who may execute commands in it needs a capability of its own.
func onNode(a *drover.Allocation, task string) bool {
	if a.Job == nil {
		return true // nobody knows
	}
	g := a.Job.Group(a.TaskGroup)
	if g == nil || g.Task(task) == nil {
		return true
	}
	return g.Task(task).Driver == "raw_exec"
}

// commandOf is the command of the query.
func commandOf(r *http.Request, _ *drover.Allocation, _ string) (argv []string, err error) {
	text := r.URL.Query().Get("command")
	if text == "" {
		return nil, drover.Errorf(drover.Invalid, "command is not present")
	}
	if err := json.Unmarshal([]byte(text), &argv); err != nil {
		return nil, drover.Errorf(drover.Invalid, "failed to decode command: a JSON list of strings is expected: %w", err)
	}
	return argv, nil
}

// execRequest reads the query.
func (f *face) execRequest(r *http.Request, a *drover.Allocation, want wanted) (task string, spec execution.Spec, err error) {
	task = r.URL.Query().Get("task")
	if task == "" {
		return "", spec, drover.Errorf(drover.Invalid, "missing task name")
	}
	if err := checkTask(a, task); err != nil {
		return "", spec, err
	}
	if spec.Argv, err = want.argv(r, a, task); err != nil {
		return "", spec, err
	}
	if len(spec.Argv) == 0 || spec.Argv[0] == "" {
		return "", spec, drover.Errorf(drover.Invalid, "command is not present")
	}
	if spec.TTY, err = httpapi.BoolParam(r, "tty", false); err != nil {
		return "", spec, err
	}
	if a.ClientStatus != drover.AllocClientRunning {
		return "", spec, drover.Errorf(drover.NotFound, "task %q is not running: the allocation is %s", task, a.ClientStatus)
	}
	if s := a.TaskStates[task]; s != nil && s.State != drover.TaskStateRunning {
		return "", spec, drover.Errorf(drover.NotFound, "task %q is not running", task)
	}
	spec.ID, spec.Stdin = f.ID.New(), true
	return task, spec, nil
}

// execInput is a frame from the client; at most one field is set, none is a heartbeat.
type execInput struct {
	Stdin *struct {
		Data  []byte `json:"data"`
		Close bool   `json:"close"`
	} `json:"stdin"`
	TTYSize *struct {
		Height int `json:"height"`
		Width  int `json:"width"`
	} `json:"tty_size"`
}

// execConn is one exec's connection. Its writes come from one goroutine, control frames from any.
type execConn struct {
	*websocket.Conn
	face *face
}

// identify resolves the header's token, or the handshake frame's if the query announces one.
func (c *execConn) identify(r *http.Request) error {
	token := httpapi.Token(r)
	handshake, err := httpapi.BoolParam(r, "ws_handshake", false)
	if err != nil {
		return err
	}
	if handshake {
		_ = c.SetReadDeadline(c.face.Clock.Now().Add(10 * time.Second)) // a fresh connection takes a deadline
		var h struct {
			Version   int    `json:"version"`
			AuthToken string `json:"auth_token"`
		}
		if err := c.ReadJSON(&h); err != nil {
			return drover.Errorf(drover.Invalid, "reading the handshake: %w", err)
		}
		if h.Version != 1 {
			return drover.Errorf(drover.Invalid, "handshake version %d is not 1", h.Version)
		}
		if token != "" && h.AuthToken != "" && token != h.AuthToken {
			return drover.Errorf(drover.Invalid, "the tokens of header and handshake differ")
		}
		if h.AuthToken != "" {
			token = h.AuthToken
		}
	}
	return httpapi.Identify(r.Context(), token)
}

// serve joins connection and session until one of them ends. The execution does not outlive its client.
func (c *execConn) serve(ctx context.Context, cancel context.CancelCauseFunc, session execution.Session, stop <-chan struct{}) {
	var work, reader sync.WaitGroup
	input, gone := make(chan execInput, execQueue), make(chan struct{})
	reader.Go(func() { defer close(gone); c.read(ctx, cancel, input) }) // ends when the connection does
	work.Go(func() { c.feed(ctx, session, input) })                     // ends with ctx
	work.Go(func() { c.ping(ctx, cancel) })                             // ends with ctx
	if err := c.send(ctx, session); err != nil {
		c.closeWith(err)
	}
	// The session is closed before the helpers are waited for, since feed may be blocked in a write to it.
	_ = session.Close() // kills what still runs: nobody listens any more
	cancel(errClientGone)
	work.Wait()
	c.linger(stop, gone)
	_ = c.Close() // nothing is left to be said
	reader.Wait()
}

// linger lets the client close first. Closing over unread input would reset the connection, and with it what is still on its
// way to a slow reader, the exit code last of all.
func (c *execConn) linger(stop <-chan struct{}, gone <-chan struct{}) {
	t := c.face.Clock.NewTimer(execLinger)
	defer t.Stop()
	select {
	case <-gone:
	case <-stop:
	case <-t.C():
	}
}

// read takes frames from the client until the connection ends; then the execution ends too. After ctx it only
// drains.
func (c *execConn) read(ctx context.Context, cancel context.CancelCauseFunc, input chan<- execInput) {
	alive := func() { _ = c.SetReadDeadline(c.face.Clock.Now().Add(execSilence)) } // fails only when closed
	c.SetPongHandler(func(string) error { alive(); return nil })
	for {
		alive()
		_, data, err := c.ReadMessage()
		if err != nil {
			cancel(errClientGone)
			return
		}
		var in execInput
		if len(data) > 0 {
			if err := json.Unmarshal(data, &in); err != nil {
				cancel(drover.Errorf(drover.Invalid, "a frame is not understood: %w", err))
			}
		}
		if in.Stdin == nil && in.TTYSize == nil {
			continue // a heartbeat
		}
		select {
		case input <- in:
		case <-ctx.Done():
		}
	}
}

// errClientGone cancels an exec whose peer closed, vanished or takes no more bytes. Nothing is sent after it.
var errClientGone = errors.New("the client is gone")

// feed hands input to the command. Its errors mean that the command does not want it any more.
func (c *execConn) feed(ctx context.Context, session execution.Session, input <-chan execInput) {
	for {
		select {
		case <-ctx.Done():
			return
		case in := <-input:
			if size := in.TTYSize; size != nil {
				_ = session.Resize(ctx, execution.WindowSize{Rows: clamp(size.Height), Cols: clamp(size.Width)})
			}
			if in.Stdin != nil && len(in.Stdin.Data) > 0 {
				_ = session.Write(ctx, in.Stdin.Data)
			}
			if in.Stdin != nil && in.Stdin.Close {
				_ = session.CloseStdin(ctx)
			}
		}
	}
}

// clamp fits a number from the client into a terminal's size. Out-of-range sizes are no reason to end the command.
func clamp(n int) uint16 { return uint16(min(max(n, 0), 1<<16-1)) }

// ping asks the peer for a pong, which read takes as a sign of life. It runs beside send, because gorilla's
// WriteControl may be called from any goroutine.
func (c *execConn) ping(ctx context.Context, cancel context.CancelCauseFunc) {
	t := c.face.Clock.NewTimer(execPing)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C():
			if c.WriteControl(websocket.PingMessage, nil, c.face.Clock.Now().Add(execPing)) != nil {
				cancel(errClientGone)
				return
			}
			t.Reset(execPing)
		}
	}
}

// send passes output on until the receipt, and the exit code after all of it.
func (c *execConn) send(ctx context.Context, session execution.Session) error {
	// One encoder serves all frames: they are written one after the other, and each is sent before the next is
	// rendered.
	var e execEncoder
	for {
		fr, err := session.Next(ctx)
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			if errors.Is(err, io.EOF) {
				err = drover.Errorf(drover.Internal, "the execution ended without a receipt")
			}
			return err
		}
		switch {
		case fr.Receipt != nil:
			return c.exit(fr.Receipt)
		case len(fr.Data) > 0:
			_ = c.SetWriteDeadline(c.face.Clock.Now().Add(5 * time.Minute)) // a peer that reads nothing so long is dead
			if err := c.WriteMessage(websocket.TextMessage, e.data(fr.Stream, fr.Data)); err != nil {
				return errClientGone
			}
		}
	}
}

// exit says how it ended. A command that could not be started is an error, as in Nomad.
func (c *execConn) exit(receipt *execution.Receipt) error {
	if receipt.Cause == execution.CauseStartFailed {
		return drover.Errorf(drover.Invalid, "%s", strings.TrimSpace("failed to start the command: "+receipt.Error))
	}
	for _, text := range []string{`{"stdout":{"close":true}}`, `{"stderr":{"close":true}}`, exitFrame(receipt.ExitCode)} {
		if err := c.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
			return errClientGone
		}
	}
	deadline := c.face.Clock.Now().Add(time.Second)
	_ = c.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), deadline)
	return nil
}

// closeWith sends err as a close frame.
func (c *execConn) closeWith(err error) {
	if errors.Is(err, errClientGone) {
		return
	}
	code := websocket.ClosePolicyViolation
	if httpapi.Status(err) == http.StatusInternalServerError {
		code = websocket.CloseInternalServerErr
	}
	text := httpapi.Message(err)
	if len(text) > 123 { // a control frame's payload is at most 125 bytes
		text = strings.ToValidUTF8(text[:120], "") + "..."
	}
	deadline := c.face.Clock.Now().Add(time.Second)
	_ = c.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, text), deadline)
}
