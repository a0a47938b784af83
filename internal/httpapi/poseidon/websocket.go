package poseidon

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi/runes"
	"github.com/drover-project/drover/internal/httpapi/socket"
)

// maxStdinFrame bounds one message of stdin; Poseidon has no bound.
const maxStdinFrame = 16 << 20

// connect runs a prepared execution for the client of the websocket.
func (f *Face) connect(w http.ResponseWriter, r *http.Request) error {
	runner := r.PathValue("runner")
	claimed, err := f.Runners.Runner(r.Context(), runner)
	if err != nil {
		return runnerError(err)
	}
	execution := r.URL.Query().Get("executionID")
	if !f.Executions.Prepared(runner, execution) {
		return &reply{status: http.StatusNotFound, message: textNoExecution}
	}
	if refusal := socket.Check(r); refusal != nil { // before it is taken: a refused client may try again
		return refused(refusal)
	}
	spec, err := f.Executions.Take(r.Context(), runner, execution)
	switch drover.CodeOf(err) {
	case drover.Gone:
		return runnerError(err)
	case drover.NotFound:
		return &reply{status: http.StatusNotFound, message: textNoExecution}
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	starting := make(chan opened, 1)
	go func() { // ends when the command was started
		session, err := f.Executions.Open(ctx, runner, spec)
		starting <- opened{session, err}
	}()
	runtime.Gosched()                               // what follows has time while the node starts the command
	conn, err := socket.AcceptJoined(w, r, f.Clock) // with "start"
	if err != nil {
		if o := <-starting; o.err == nil {
			_ = o.session.Close() // which kills it
		}
		return nil // Accept has answered
	}
	defer conn.CloseNow() //nolint:errcheck // closed regularly before
	conn.SetReadLimit(maxStdinFrame)
	p := &peer{conn: conn, clock: f.Clock, began: f.Clock.Now()}
	if spec.Limits.Wall == 0 {
		p.patience = claimed.IdleTimeout
	}
	f.serve(ctx, p, runner, starting)
	return nil
}

// refused is how the library of Poseidon answers a bad handshake.
func refused(r *socket.Refusal) error {
	if r.Status == http.StatusForbidden {
		return &reply{status: r.Status, message: "websocket: request origin not allowed by Upgrader.CheckOrigin"}
	}
	return &reply{status: http.StatusBadRequest, message: "websocket: the client is not using the websocket protocol: " + r.Reason}
}

// opened is what became of a start.
type opened struct {
	session execution.Session
	err     error
}

// serve lasts as long as the execution or its client.
func (f *Face) serve(ctx context.Context, p *peer, runner string, starting <-chan opened) {
	ctx, leave := context.WithCancelCause(ctx)
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer leave(nil)
	sent := p.send(ctx, "start", nil)
	start := <-starting
	if start.err != nil {
		f.Log.Info("execution did not start", "runner", runner, "error", start.err)
		p.fail(ctx, start.err)
		p.finish()
		return
	}
	session := start.session
	defer session.Close() //nolint:errcheck // detaching cannot fail
	if sent != nil {
		return
	}
	defer p.conn.KeepAlive(ctx, f.PingEvery, leave)()
	helpers.Go(func() { leave(p.read(ctx, session, &helpers)) }) // ends with the socket
	following, expire := context.WithCancelCause(ctx)            // its end leaves the socket alone
	defer expire(nil)
	if p.patience > 0 {
		p.note()
		helpers.Go(func() { expire(p.watch(following)) }) // ends with ctx, or when nothing happens any more
	}
	receipt, err := p.relay(ctx, following, session)
	if errors.Is(context.Cause(following), errInactive) {
		f.expire(ctx, p, runner)
		return
	}
	if err != nil {
		return // the client is gone; closing the session kills the execution
	}
	p.conclude(ctx, receipt)
	if receipt.Cause == execution.CauseOOM {
		if err := f.Runners.ReleaseAfterOOM(ctx, runner); err != nil && drover.CodeOf(err) != drover.Gone {
			f.Log.Warn("releasing a runner after an out-of-memory kill", "runner", runner, "error", err)
		}
	}
	p.finish()
}

// expire ends a runner whose execution has no limit and did nothing for the runner's inactivity timeout.
func (f *Face) expire(ctx context.Context, p *peer, runner string) {
	_ = p.send(ctx, "timeout", nil) // a client that left needs none
	if err := f.Runners.Release(ctx, runner); err != nil && drover.CodeOf(err) != drover.Gone {
		f.Log.Warn("releasing an inactive runner", "runner", runner, "error", err)
	}
	p.finish()
}

// peer is the client's end of the websocket.
type peer struct {
	conn     *socket.Conn
	clock    clock.Clock
	message  message
	patience time.Duration // how long nothing may be said in either direction; 0: for ever
	began    time.Time
	said     atomic.Int64 // when something was said last, in ns since began, which no step of the wall clock moves
}

// note notes that something was said.
func (p *peer) note() {
	if p.patience > 0 {
		p.said.Store(int64(p.clock.Now().Sub(p.began)))
	}
}

// errInactive: the execution has no time limit, and nothing was said for the runner's inactivity timeout.
var errInactive = errors.New("the execution is inactive")

// watch returns errInactive when nothing was said for as long as the peer's patience, nil when ctx ended.
func (p *peer) watch(ctx context.Context) error {
	left := p.patience
	for clock.Sleep(ctx, p.clock, left) {
		if left = p.patience - p.clock.Now().Sub(p.began.Add(time.Duration(p.said.Load()))); left <= 0 {
			return errInactive
		}
	}
	return nil
}

// read takes stdin off the socket: text as the contract says, and binary messages too. It ends with the socket.
func (p *peer) read(ctx context.Context, session execution.Session, helpers *sync.WaitGroup) error {
	var stdin *socket.Inbox[[]byte] // what the program did not read yet; most clients send none
	for {
		_, data, err := p.conn.Read(ctx)
		if err != nil {
			return socket.ErrLeft
		}
		p.note()
		if stdin == nil {
			stdin = socket.NewInbox[[]byte]()
			helpers.Go(func() { write(ctx, session, stdin) }) // ends with ctx
		}
		if !stdin.Put(ctx, p.conn, data, len(data)) {
			return nil
		}
	}
}

// write feeds stdin to the program, which may be slow.
func write(ctx context.Context, session execution.Session, stdin *socket.Inbox[[]byte]) {
	for {
		data, ok := stdin.Take(ctx)
		if !ok || session.Write(ctx, data) != nil && ctx.Err() != nil {
			return // what an ended program did not read is lost
		}
	}
}

// relay sends the program's output until its receipt, or until following ends.
func (p *peer) relay(ctx, following context.Context, session execution.Session) (*execution.Receipt, error) {
	var tails [3][]byte
	for {
		frame, err := session.Next(following)
		if err != nil {
			return nil, err
		}
		switch {
		case frame.Receipt != nil:
			for _, s := range []execution.Stream{execution.Stdout, execution.Stderr} {
				if len(tails[s]) > 0 { // the program ended within a character
					if err := p.send(ctx, streamNames[s], tails[s]); err != nil {
						return nil, err
					}
				}
			}
			return frame.Receipt, nil
		case len(frame.Data) > 0:
			p.note()
			joined := p.conn.JoinPending(session)
			whole, tail := runes.Split(tails[frame.Stream], frame.Data)
			tails[frame.Stream] = tail
			if len(whole) > 0 {
				if err := p.send(ctx, streamNames[frame.Stream], whole); err != nil {
					return nil, err
				}
			}
			if !joined {
				p.conn.Flush() // it may have had nothing to send yet
			}
		}
	}
}

// streamNames are the types of the messages that carry output.
var streamNames = [...]string{execution.Stdout: "stdout", execution.Stderr: "stderr"}

// Texts of the contract's error messages.
const (
	textExecutionError = "Error executing the request"
	textOOM            = "the allocation was OOM Killed"
	textStopped        = "the allocation stopped as expected"
)

// conclude sends the one last message.
func (p *peer) conclude(ctx context.Context, r *execution.Receipt) {
	switch r.Cause {
	case execution.CauseTimeout:
		_ = p.send(ctx, "timeout", nil)
	case execution.CauseOOM:
		_ = p.send(ctx, "error", []byte(textOOM))
	case execution.CauseRunnerGone:
		p.fail(ctx, errors.New(r.Error))
	case execution.CauseStartFailed:
		if p.send(ctx, "stderr", []byte(r.Error+"\n")) == nil {
			_ = p.exit(ctx, r.ExitCode)
		}
	default:
		if r.Truncated && r.ExitCode == 0 { // some of the output was lost: that is no success
			p.fail(ctx, errors.New(r.Error))
			return
		}
		p.conn.Join() // with the closing
		_ = p.exit(ctx, r.ExitCode)
	}
}

// fail sends an error in the contract's few words.
func (p *peer) fail(ctx context.Context, err error) {
	text := textExecutionError
	for _, known := range []string{textOOM, textStopped} {
		if strings.Contains(err.Error(), known) {
			text = known
		}
	}
	_ = p.send(ctx, "error", []byte(text)) // a client that left needs no error
}

// finish closes with 1000 at once: CodeOcean waits for it.
func (p *peer) finish() { _ = p.conn.Close(websocket.StatusNormalClosure, "") }
