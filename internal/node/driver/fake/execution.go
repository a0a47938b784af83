package fake

import (
	"context"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/supervisor/proto"
)

// execution is a script that runs, and all of its output.
type execution struct {
	t       *task
	spec    drover.ExecutionSpec
	started time.Time
	unknown bool // there is no such command
	kill    context.CancelCauseFunc

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at every change
	out      [2][]byte
	cut      bool
	stdin    []byte
	eof      bool
	signal   int // that ends it
	cause    drover.Cause
	receipt  *drover.Receipt
	sessions int
}

// StartExecution runs a script in the fake shell. Errors: Invalid, Conflict, Gone.
func (t *task) StartExecution(_ context.Context, spec drover.ExecutionSpec) (drover.Session, error) {
	switch {
	case t.over():
		return nil, drover.Errorf(drover.Gone, "the task has ended: %w", driver.ErrGone)
	case len(spec.Argv) == 0:
		return nil, drover.Errorf(drover.Invalid, "an execution needs a command")
	case spec.User == "no-such-user":
		return nil, drover.Errorf(drover.Invalid, "unknown user %q", spec.User)
	}
	runCtx, kill := context.WithCancelCause(context.Background()) // its life is the execution's
	x := &execution{t: t, spec: spec, started: t.d.clock.Now(), kill: kill, changed: make(chan struct{}), eof: !spec.Stdin, unknown: !known(spec.Argv)}
	t.mu.Lock()
	if t.execs[spec.ID] != nil && spec.ID != "" {
		t.mu.Unlock()
		kill(nil)
		return nil, drover.Errorf(drover.Conflict, "execution id %q is in use", spec.ID)
	}
	t.execs[spec.ID] = x
	t.mu.Unlock()
	s := x.open(drover.Offsets{})
	if spec.Limits.Wall > 0 {
		timer := t.d.clock.AfterFunc(spec.Limits.Wall, func() { x.end(drover.CauseTimeout) })
		context.AfterFunc(runCtx, func() { timer.Stop() })
	}
	go x.run(runCtx) // ends with the script, a kill, or the task
	return s, nil
}

// AttachExecution opens another session. Errors: NotFound.
func (t *task) AttachExecution(_ context.Context, id string, from drover.Offsets) (drover.Session, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.execs[id]
	if x == nil {
		return nil, drover.Errorf(drover.NotFound, "no execution %q", id)
	}
	return x.open(from), nil
}

// Executions lists them.
func (t *task) Executions(context.Context) ([]drover.Execution, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := []drover.Execution{}
	for _, x := range t.execs {
		x.mu.Lock()
		list = append(list, drover.Execution{ID: x.spec.ID, Spec: x.spec, Pid: 1, Running: x.receipt == nil, Receipt: x.receipt})
		x.mu.Unlock()
	}
	return list, nil
}

func (x *execution) open(from drover.Offsets) *session {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sessions++
	return &session{x: x, pos: [2]int64{from.Stdout, from.Stderr}}
}

// run runs the script and writes the receipt.
func (x *execution) run(ctx context.Context) {
	stop := make(chan struct{})
	defer close(stop)
	go func() { // ends with run
		select {
		case <-x.t.done:
			x.end(drover.CauseRunnerGone)
		case <-stop:
		}
	}()
	sh := &shell{x: x, ctx: ctx}
	code, failure := sh.run(x.spec.Argv)
	x.kill(nil)
	x.mu.Lock()
	defer x.mu.Unlock()
	r := &drover.Receipt{
		ExecutionID: x.spec.ID, ExitCode: code, Cause: drover.CauseExited, StartedAt: x.started, Wall: x.t.d.clock.Now().Sub(x.started),
		StdoutBytes: int64(len(x.out[0])), StderrBytes: int64(len(x.out[1])), Truncated: x.cut,
	}
	if failure != "" {
		r.Cause, r.Error = drover.CauseStartFailed, failure
	}
	if x.cause != "" {
		r.Cause, r.ExitCode, r.Signal = x.cause, 128+x.signal, x.signal
	}
	x.receipt = r
	x.notify()
}

// end kills the script.
func (x *execution) end(cause drover.Cause) {
	x.mu.Lock()
	if x.cause == "" && x.receipt == nil {
		x.cause, x.signal = cause, 9
	}
	x.mu.Unlock()
	x.kill(nil)
}

// notify wakes all that wait. Caller holds mu.
func (x *execution) notify() {
	close(x.changed)
	x.changed = make(chan struct{})
}

func (x *execution) write(i int, p []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if limit := x.spec.Limits.OutputBytes; limit > 0 && int64(len(x.out[i])+len(p)) > limit {
		p, x.cut = p[:max(0, limit-int64(len(x.out[i])))], true
	}
	x.out[i] = append(x.out[i], p...)
	x.notify()
}

// read takes stdin; io.EOF at its end, or when it is killed.
func (x *execution) read(ctx context.Context) ([]byte, error) {
	for {
		x.mu.Lock()
		p, eof, changed := x.stdin, x.eof, x.changed
		x.stdin = nil
		x.mu.Unlock()
		if len(p) > 0 {
			return p, nil
		}
		if eof {
			return nil, io.EOF
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, io.EOF
		}
	}
}

func (x *execution) sleep(ctx context.Context, d time.Duration) { clock.Sleep(ctx, x.t.d.clock, d) }

// session is a reader of an execution.
type session struct {
	x      *execution
	pos    [2]int64
	begun  bool
	ended  bool
	closed sync.Once
}

// Next implements drover.Session.
func (s *session) Next(ctx context.Context) (drover.Frame, error) {
	for {
		s.x.mu.Lock()
		f, ok := s.frame()
		changed := s.x.changed
		s.x.mu.Unlock()
		if ok {
			return f, nil
		}
		if s.ended {
			return drover.Frame{}, io.EOF
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return drover.Frame{}, context.Cause(ctx)
		}
	}
}

// frame returns the next one, if there is one. Caller holds x.mu.
func (s *session) frame() (drover.Frame, bool) {
	r := s.x.receipt
	if !s.begun && !s.x.unknown {
		s.begun = true
		return drover.Frame{Started: true, Pid: 1}, true
	}
	for i := range s.pos {
		if at := s.pos[i]; at < int64(len(s.x.out[i])) {
			p := slices.Clone(s.x.out[i][at:])
			s.pos[i] += int64(len(p))
			return drover.Frame{Stream: drover.Stdout + drover.Stream(i), Offset: at, Data: p}, true
		}
	}
	if r != nil && !s.ended {
		s.ended = true
		return drover.Frame{Receipt: new(*r)}, true
	}
	return drover.Frame{}, false
}

// Write implements drover.Session.
func (s *session) Write(_ context.Context, p []byte) error {
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	if s.x.receipt != nil {
		return drover.Errorf(drover.Gone, "the execution has ended")
	}
	s.x.stdin = append(s.x.stdin, p...)
	s.x.notify()
	return nil
}

// CloseStdin implements drover.Session.
func (s *session) CloseStdin(context.Context) error {
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	s.x.eof = true
	s.x.notify()
	return nil
}

// Resize implements drover.Session.
func (s *session) Resize(_ context.Context, size drover.WindowSize) error {
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	s.x.spec.Size = size
	return nil
}

// Signal implements drover.Session: every signal ends the script.
func (s *session) Signal(_ context.Context, name string) error {
	sig, err := proto.ParseSignal(name)
	if err != nil {
		return err
	}
	cause := drover.CauseSignalled
	if sig == 9 {
		cause = drover.CauseKilled
	}
	s.x.mu.Lock()
	if s.x.cause == "" && s.x.receipt == nil {
		s.x.cause, s.x.signal = cause, int(sig)
	}
	s.x.mu.Unlock()
	s.x.kill(nil)
	return nil
}

// Close implements drover.Session.
func (s *session) Close() error {
	s.closed.Do(func() {
		s.x.mu.Lock()
		s.x.sessions--
		last, over := s.x.sessions == 0, s.x.receipt != nil
		detach := s.x.spec.Detach
		s.x.mu.Unlock()
		switch {
		case !last:
		case over && detach == 0:
			s.x.t.mu.Lock()
			if s.x.t.execs[s.x.spec.ID] == s.x {
				delete(s.x.t.execs, s.x.spec.ID)
			}
			s.x.t.mu.Unlock()
		case !over && detach == 0:
			s.x.end(drover.CauseKilled)
		}
	})
	return nil
}
