package fake

import (
	"context"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
	"github.com/drover-project/drover/internal/wake"
)

// execution is a script that runs, and all of its output.
type command struct {
	t       *task
	spec    execution.Spec
	started time.Time
	unknown bool // there is no such command
	kill    context.CancelCauseFunc

	mu       sync.Mutex
	changed  wake.Broadcast // anything of it
	out      [2][]byte
	cut      bool
	stdin    []byte
	eof      bool
	signal   int // that ends it
	cause    execution.Cause
	receipt  *execution.Receipt
	sessions int
}

// StartExecution runs a script in the fake shell. Errors: Invalid, Conflict, Gone.
func (t *task) StartExecution(_ context.Context, spec execution.Spec) (execution.Session, error) {
	switch {
	case t.over():
		return nil, drover.Errorf(drover.Gone, "the task has ended: %w", driver.ErrGone)
	case len(spec.Argv) == 0:
		return nil, drover.Errorf(drover.Invalid, "an execution needs a command")
	case spec.User == "no-such-user":
		return nil, drover.Errorf(drover.Invalid, "unknown user %q", spec.User)
	}
	// The caller's context ends with the request, but the execution may outlive it.
	runCtx, kill := context.WithCancelCause(context.Background()) // its life is the execution's
	x := &command{
		t:       t,
		spec:    spec,
		started: t.d.clock.Now(),
		kill:    kill,
		eof:     !spec.Stdin,
		unknown: !known(spec.Argv),
	}
	t.mu.Lock()
	if t.execs[spec.ID] != nil && spec.ID != "" {
		t.mu.Unlock()
		kill(nil)
		return nil, drover.Errorf(drover.Conflict, "execution id %q is in use", spec.ID)
	}
	t.execs[spec.ID] = x
	t.mu.Unlock()
	s := x.open(execution.Offsets{})
	// The limit of wall time runs on the driver's clock, so a test with a fake clock decides when it is over.
	if spec.Limits.Wall > 0 {
		timer := t.d.clock.AfterFunc(spec.Limits.Wall, func() { x.end(execution.CauseTimeout) })
		context.AfterFunc(runCtx, func() { timer.Stop() })
	}
	go x.run(runCtx) // ends with the script, a kill, or the task
	return s, nil
}

// AttachExecution opens another session. Errors: NotFound.
func (t *task) AttachExecution(_ context.Context, id string, from execution.Offsets) (execution.Session, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.execs[id]
	if x == nil {
		return nil, drover.Errorf(drover.NotFound, "no execution %q", id)
	}
	return x.open(from), nil
}

// Executions lists them.
func (t *task) Executions(context.Context) ([]execution.Execution, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := []execution.Execution{}
	for _, x := range t.execs {
		x.mu.Lock()
		list = append(list, execution.Execution{ID: x.spec.ID, Spec: x.spec, Pid: 1, Running: x.receipt == nil, Receipt: x.receipt})
		x.mu.Unlock()
	}
	return list, nil
}

// open adds a session that reads from these offsets on. Close counts sessions, since the last one may end the execution.
func (x *command) open(from execution.Offsets) *session {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sessions++
	return &session{x: x, pos: [2]int64{from.Stdout, from.Stderr}}
}

// run runs the script and writes the receipt.
func (x *command) run(ctx context.Context) {
	stop := make(chan struct{})
	defer close(stop)
	// An execution ends with its task, as real processes end with their control group.
	go func() { // ends with run
		select {
		case <-x.t.done:
			x.end(execution.CauseRunnerGone)
		case <-stop:
		}
	}()
	sh := &shell{x: x, ctx: ctx}
	code, failure := sh.run(x.spec.Argv)
	// The context ends with the script, which also stops the timer of the limit.
	x.kill(nil)
	x.mu.Lock()
	defer x.mu.Unlock()
	r := &execution.Receipt{
		ExecutionID: x.spec.ID, ExitCode: code, Cause: execution.CauseExited, StartedAt: x.started, Wall: x.t.d.clock.Now().Sub(x.started),
		StdoutBytes: int64(len(x.out[0])), StderrBytes: int64(len(x.out[1])), Truncated: x.cut,
	}
	if failure != "" {
		r.Cause, r.Error = execution.CauseStartFailed, failure
	}
	// A kill goes before what the script returned: it was only cut short.
	if x.cause != "" {
		r.Cause, r.ExitCode, r.Signal = x.cause, 128+x.signal, x.signal
	}
	x.receipt = r
	x.notify()
}

// end kills the script.
func (x *command) end(cause execution.Cause) {
	x.mu.Lock()
	if x.cause == "" && x.receipt == nil {
		x.cause, x.signal = cause, 9
	}
	x.mu.Unlock()
	x.kill(nil)
}

// notify wakes all that wait. Caller holds mu.
func (x *command) notify() {
	x.changed.Send()
}

// write appends to a stream's output and drops what is beyond the limit; i is 0 for stdout and 1 for stderr. All output is kept, so a
// session can attach at any offset.
func (x *command) write(i int, p []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if limit := x.spec.Limits.OutputBytes; limit > 0 && int64(len(x.out[i])+len(p)) > limit {
		p, x.cut = p[:max(0, limit-int64(len(x.out[i])))], true
	}
	x.out[i] = append(x.out[i], p...)
	x.notify()
}

// read takes stdin; io.EOF at its end, or when it is killed.
func (x *command) read(ctx context.Context) ([]byte, error) {
	for {
		x.mu.Lock()
		p, eof, changed := x.stdin, x.eof, x.changed.C()
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

// sleep returns early when the execution is killed.
func (x *command) sleep(ctx context.Context, d time.Duration) { clock.Sleep(ctx, x.t.d.clock, d) }

// session is a reader of an execution.
type session struct {
	x      *command
	pos    [2]int64
	begun  bool
	ended  bool
	closed sync.Once
}

// Next implements execution.Session.
func (s *session) Next(ctx context.Context) (execution.Frame, error) {
	for {
		s.x.mu.Lock()
		f, ok := s.frame()
		changed := s.x.changed.C()
		s.x.mu.Unlock()
		if ok {
			return f, nil
		}
		if s.ended {
			return execution.Frame{}, io.EOF
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return execution.Frame{}, context.Cause(ctx)
		}
	}
}

// frame returns the next one, if there is one. Caller holds x.mu.
func (s *session) frame() (execution.Frame, bool) {
	r := s.x.receipt
	// As from a supervisor, a command that cannot be started has no frame Started, only a receipt.
	if !s.begun && !s.x.unknown {
		s.begun = true
		return execution.Frame{Started: true, Pid: 1}, true
	}
	for i := range s.pos {
		if at := s.pos[i]; at < int64(len(s.x.out[i])) {
			p := slices.Clone(s.x.out[i][at:])
			s.pos[i] += int64(len(p))
			return execution.Frame{Stream: execution.Stdout + execution.Stream(i), Offset: at, Data: p}, true
		}
	}
	if r != nil && !s.ended {
		s.ended = true
		return execution.Frame{Receipt: new(*r)}, true
	}
	return execution.Frame{}, false
}

// Write implements execution.Session.
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

// CloseStdin implements execution.Session.
func (s *session) CloseStdin(context.Context) error {
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	s.x.eof = true
	s.x.notify()
	return nil
}

// Resize implements execution.Session.
func (s *session) Resize(_ context.Context, size execution.WindowSize) error {
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	s.x.spec.Size = size
	return nil
}

// Signal implements execution.Session: every signal ends the script.
func (s *session) Signal(_ context.Context, name string) error {
	sig, err := wire.ParseSignal(name)
	if err != nil {
		return err
	}
	cause := execution.CauseSignalled
	if sig == 9 {
		cause = execution.CauseKilled
	}
	s.x.mu.Lock()
	if s.x.cause == "" && s.x.receipt == nil {
		s.x.cause, s.x.signal = cause, int(sig)
	}
	s.x.mu.Unlock()
	s.x.kill(nil)
	return nil
}

// Close implements execution.Session.
func (s *session) Close() error {
	s.closed.Do(func() {
		s.x.mu.Lock()
		s.x.sessions--
		last, over := s.x.sessions == 0, s.x.receipt != nil
		detach := s.x.spec.Detach
		s.x.mu.Unlock()
		// Detach 0 means that the execution goes with its last session. With another value it stays for AttachExecution, also when it has
		// ended.
		switch {
		case !last:
		case over && detach == 0:
			s.x.t.mu.Lock()
			if s.x.t.execs[s.x.spec.ID] == s.x {
				delete(s.x.t.execs, s.x.spec.ID)
			}
			s.x.t.mu.Unlock()
		case !over && detach == 0:
			s.x.end(execution.CauseKilled)
		}
	})
	return nil
}
