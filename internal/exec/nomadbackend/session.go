package nomadbackend

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/nomad/api"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/environment"
)

// Why a session was cancelled; receipt turns the first three into causes.
var (
	errWall   = errors.New("the wall limit")
	errOutput = errors.New("the output limit")
	errKilled = errors.New("killed")
	errEnded  = errors.New("all of it is here")
)

// session is an execution over Nomad's exec websocket, and its only connection.
type session struct {
	b       *Backend
	allocID string
	spec    execution.Spec
	begun   time.Time
	ctx     context.Context // ends with the execution; its cause says why
	cancel  context.CancelCauseFunc
	frames  chan execution.Frame
	closed  chan struct{} // by Close
	once    sync.Once
	stdinR  *io.PipeReader
	stdinW  *io.PipeWriter
	sizes   chan api.TerminalSize

	mu      sync.Mutex // the two streams are written by two goroutines
	written [3]int64
	cut     [3]*cutter // nil: there is no such stream
}

var _ execution.Session = (*session)(nil)

// StartExecution serves exchange.Workloads.
func (w *workloads) StartExecution(ctx context.Context, allocID, _ string, spec execution.Spec) (execution.Session, error) {
	if err := unsupported(spec.Limits); err != nil {
		return nil, err
	}
	if len(spec.Secrets) > 0 {
		return nil, drover.Errorf(drover.NotImplemented, "secrets: runners of another cluster cannot be given any")
	}
	b := w.b
	s := &session{
		b: b, allocID: allocID, spec: spec, begun: b.deps.Clock.Now(), frames: make(chan execution.Frame),
		closed: make(chan struct{}), sizes: make(chan api.TerminalSize, 1),
	}
	s.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	s.cut[execution.Stdout] = newCutter(spec.ID)
	if !spec.TTY {
		s.cut[execution.Stderr] = newCutter(spec.ID)
	}
	s.stdinR, s.stdinW = io.Pipe()
	if !spec.Stdin {
		_ = s.stdinW.Close()
	}
	if spec.TTY && spec.Size.Rows > 0 {
		s.sizes <- api.TerminalSize{Height: int(spec.Size.Rows), Width: int(spec.Size.Cols)}
	}
	if spec.Limits.Wall > 0 {
		timer := b.deps.Clock.AfterFunc(spec.Limits.Wall, func() { s.cancel(errWall) })
		context.AfterFunc(s.ctx, func() { timer.Stop() }) //nolint:contextcheck // the session's life, not the call's
	}
	b.track(s, true)
	go s.run() // ends with the execution or with s.ctx
	return s, nil
}

// run holds the execution's connection from the start to the receipt. The pid is unknown, as Nomad does not tell
// it. The exit code is the trailers' if they came; the cluster's own only counts without them, and then as
// truncated. After an end that is not the command's own the processes are killed, since closing the connection does
// not do that.
func (s *session) run() {
	defer s.b.track(s, false)
	defer close(s.frames)
	defer s.cancel(nil)
	defer s.stdinR.Close() //nolint:errcheck // lets writers go
	if !s.deliver(execution.Frame{Started: true, Pid: -1}) {
		return
	}
	code, err := s.b.client.Allocations().Exec(s.ctx, s.b.stub(s.allocID), environment.TaskName, s.spec.TTY, wrap(s.spec),
		s.stdinR, stream{s, execution.Stdout}, stream{s, execution.Stderr}, s.sizes, s.b.query(s.ctx))
	if ended, ok := s.ended(); ok {
		s.deliver(execution.Frame{Receipt: s.receipt(ended, nil)})
		return
	}
	if err != nil && s.ctx.Err() != nil {
		_ = s.kill("KILL") // if it cannot be reached, nothing more can be done
	}
	for of, held := range s.held() {
		_ = s.pass(execution.Stream(of), held) // nobody may be there any more
	}
	r := s.receipt(code, err)
	if r != nil && err == nil {
		r.Truncated, r.Error = true, "the cluster reported the end before all output was here"
	}
	if r == nil {
		return // Next says that the runner is gone, or the connection
	}
	s.deliver(execution.Frame{Receipt: r})
}

// receipt says how it ended; nil if nobody knows.
func (s *session) receipt(code int, err error) *execution.Receipt {
	s.mu.Lock()
	written := s.written
	s.mu.Unlock()
	r := &execution.Receipt{
		ExecutionID: s.spec.ID, ExitCode: code, Cause: execution.CauseExited, StartedAt: s.begun, Wall: s.b.deps.Clock.Now().Sub(s.begun),
		StdoutBytes: written[execution.Stdout], StderrBytes: written[execution.Stderr],
	}
	if s.spec.TTY && s.spec.TTYStderr {
		r.Error = "stderr came with stdout: the cluster has one stream for a terminal"
	}
	if err == nil {
		return r
	}
	r.ExitCode, r.Signal, r.Truncated = 137, 9, true
	switch cause := context.Cause(s.ctx); {
	case errors.Is(cause, errWall):
		r.Cause, r.Truncated = execution.CauseTimeout, false
	case errors.Is(cause, errOutput):
		r.Cause = execution.CauseOutputLimit
	case errors.Is(cause, errKilled):
		r.Cause, r.Truncated = execution.CauseKilled, false
	default:
		s.b.deps.Log.Warn("an execution on the Nomad cluster broke off", "allocation", s.allocID, "execution", s.spec.ID, "error", err)
		_ = s.kill("KILL") // nobody can attach to it again
		return nil
	}
	return r
}

// deliver waits until the frame is taken; false if the session was closed. It does not look at the context: the
// receipt is delivered after its end.
func (s *session) deliver(f execution.Frame) bool {
	select {
	case s.frames <- f:
		return true
	case <-s.closed:
		return false
	}
}

// stream takes one of the output streams. It blocks while nobody reads, and so does the program in the end.
type stream struct {
	s  *session
	of execution.Stream
}

// Write implements io.Writer.
func (w stream) Write(p []byte) (int, error) {
	s := w.s
	output := p
	if c := s.cut[w.of]; c != nil {
		s.mu.Lock()
		output = c.take(p)
		s.mu.Unlock()
	}
	if err := s.pass(w.of, output); err != nil {
		return 0, err
	}
	if _, ok := s.ended(); ok {
		s.cancel(errEnded)
	}
	return len(p), nil
}

// pass hands output on, up to the limit.
func (s *session) pass(of execution.Stream, p []byte) error {
	s.mu.Lock()
	at := s.written[of]
	s.written[of] += int64(len(p))
	s.mu.Unlock()
	limit := s.spec.Limits.OutputBytes
	if limit > 0 && at+int64(len(p)) > limit {
		p = p[:max(limit-at, 0)]
		defer s.cancel(errOutput)
	}
	for len(p) > 0 {
		piece := p[:min(len(p), 32<<10)]
		select {
		case s.frames <- execution.Frame{Stream: of, Offset: at, Data: append([]byte(nil), piece...)}:
		case <-s.closed:
			return errKilled
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		}
		at += int64(len(piece))
		p = p[len(piece):]
	}
	return nil
}

// held is what the streams hold back that never came to a trailer.
func (s *session) held() (rest [3][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for of, c := range s.cut {
		if c != nil {
			rest[of] = c.rest()
		}
	}
	return rest
}

// ended reports whether all streams came to their trailers, and the exit code that these say.
func (s *session) ended() (code int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.cut {
		if c != nil && !c.ended {
			return 0, false
		}
	}
	return s.cut[execution.Stdout].code, true
}

// Next implements execution.Session. Errors: Gone when the connection broke: there is nothing to attach to again.
func (s *session) Next(ctx context.Context) (execution.Frame, error) {
	select {
	case f, ok := <-s.frames:
		if !ok {
			return f, drover.Errorf(drover.Gone, "the connection to the Nomad cluster broke during the execution")
		}
		return f, nil
	case <-ctx.Done():
		return execution.Frame{}, context.Cause(ctx)
	}
}

// Write implements execution.Session.
func (s *session) Write(ctx context.Context, p []byte) error {
	stop := context.AfterFunc(ctx, func() { _ = s.stdinW.CloseWithError(context.Cause(ctx)) })
	defer stop()
	if _, err := s.stdinW.Write(p); err != nil {
		return drover.Errorf(drover.Conflict, "stdin is closed: %w", err)
	}
	return nil
}

// CloseStdin implements execution.Session.
func (s *session) CloseStdin(context.Context) error { return s.stdinW.Close() }

// Resize implements execution.Session.
func (s *session) Resize(ctx context.Context, size execution.WindowSize) error {
	select {
	case s.sizes <- api.TerminalSize{Height: int(size.Rows), Width: int(size.Cols)}:
		return nil
	case <-s.ctx.Done():
		return drover.Errorf(drover.Conflict, "the execution ended")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Signal implements execution.Session. Errors: Invalid, Unavailable.
func (s *session) Signal(_ context.Context, name string) error {
	name = strings.TrimPrefix(strings.ToUpper(name), "SIG")
	if name == "" || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" {
		return drover.Errorf(drover.Invalid, "signal %q: want a name as in INT", name)
	}
	if name == "KILL" {
		s.cancel(errKilled)
		return nil
	}
	return s.kill(name)
}

// killTimeout bounds the look for an execution's processes.
const killTimeout = 10 * time.Second

// kill sends the signal to all processes of the execution, through a second command in the same task. It works
// after the session's context ended, too.
func (s *session) kill(signal string) error {
	ctx, cancel := s.b.deps.Clock.WithTimeout(context.WithoutCancel(s.ctx), killTimeout)
	defer cancel()
	return s.b.run(ctx, s.allocID, []string{"/bin/sh", "-c", killScript, "drover", s.spec.ID, signal})
}

// Close implements execution.Session: as nobody can attach again, what still runs is killed.
func (s *session) Close() error {
	s.once.Do(func() {
		close(s.closed)
		s.cancel(errKilled)
		_ = s.stdinW.Close() // never fails
	})
	return nil
}
