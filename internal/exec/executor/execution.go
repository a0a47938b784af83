package executor

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exec/journal"
	"github.com/drover-project/drover/internal/exec/runner"
)

// Execution is a command that runs in a claimed runner, or ended there not long ago.
type Execution struct {
	terms
	id     string
	runner execution.Runner
	spec   execution.Spec
	use    *runner.Use
	clock  clock.Clock
	window int64
	grace  time.Duration
	base   context.Context    // of what is done for it beside requests; never ends by itself
	stop   context.CancelFunc // ends the pump
	done   chan struct{}      // closed when the receipt is there, or left

	wrote func(environment string, took time.Duration) // nil: nobody wants to know when its first output came

	stdin    *input
	absent   *absent    // its output is elsewhere; nil: it is here
	mu       sync.Mutex // guards what follows
	session  execution.Session
	journal  journal.Journal
	pid      int
	first    time.Time // when it had started, or its first output came here; times are since then
	receipt  *execution.Receipt
	gone     error // why the runner went away under it
	left     error // it may run on, but not here
	endedAt  time.Time
	readers  map[*Reader]struct{}
	waiters  int         // in Wait
	visited  bool        // a reader has been there
	reaper   clock.Timer // kills it when nobody attaches in time
	overdue  clock.Timer // reports that it outlives its runner; nil while that lives
	wake     chan struct{}
	awaited  bool // somebody waits for wake to be closed
	blocked  bool // the pump waits for a reader
	heard    bool // some output came
	dropping bool // it ran without a reader: its oldest bytes go
}

// ID returns the execution's id.
func (x *Execution) ID() string { return x.id }

// RunnerID returns its runner's id.
func (x *Execution) RunnerID() string { return x.runner.ID }

// Info returns the execution as listed.
func (x *Execution) Info() execution.Execution {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.infoLocked()
}

func (x *Execution) infoLocked() execution.Execution {
	return execution.Execution{
		ID: x.id, RunnerID: x.runner.ID, AllocID: x.runner.AllocID, Task: taskName, Spec: x.spec, Pid: x.pid,
		Running: x.receipt == nil, Receipt: x.receipt,
	}
}

// Wait blocks until it ended. Waiting keeps alive what nobody attached to yet, but reads nothing: of more output than
// the window the oldest is dropped. Errors: ctx's.
func (x *Execution) Wait(ctx context.Context) (execution.Receipt, error) {
	x.mu.Lock()
	x.waiters++
	if !x.visited {
		x.stopReaperLocked()
	}
	x.wakeLocked()
	x.mu.Unlock()
	defer func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.waiters--
		if !x.visited && x.desertedLocked() && x.spec.Detach >= 0 {
			x.killSoonLocked(max(x.spec.Detach, x.grace)) // the next poll may come
		}
	}()
	select {
	case <-x.done: // what follows was written before, and is never again
		if x.receipt == nil {
			return execution.Receipt{}, x.left
		}
		return *x.receipt, nil
	case <-ctx.Done():
		return execution.Receipt{}, context.Cause(ctx)
	}
}

// GoneReason says why the runner went away under the execution; nil if it did not.
func (x *Execution) GoneReason() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.gone
}

// Write sends stdin. Errors: Conflict once it ended; Invalid: it has no stdin.
func (x *Execution) Write(ctx context.Context, p []byte) error {
	if !x.spec.Stdin {
		return drover.Errorf(drover.Invalid, "execution %s has no stdin: start it with stdin", x.id)
	}
	_, err := x.write(ctx, anywhere, p)
	return err
}

// CloseStdin ends stdin. Errors: Conflict once it ended.
func (x *Execution) CloseStdin(ctx context.Context) error { return x.closeStdin(ctx, anywhere) }

// Resize sets the terminal's size. Errors: Conflict once it ended; Invalid: it has no terminal.
func (x *Execution) Resize(ctx context.Context, size execution.WindowSize) error {
	if !x.spec.TTY {
		return drover.Errorf(drover.Invalid, "execution %s has no terminal: start it with tty", x.id)
	}
	return x.act(func(s execution.Session) error { return s.Resize(ctx, size) })
}

// Signal signals the process group; "KILL" ends the whole tree. Errors: Conflict once it ended, Invalid.
func (x *Execution) Signal(ctx context.Context, name string) error {
	return x.act(func(s execution.Session) error { return s.Signal(ctx, name) })
}

// act calls do with the present session, outside the lock because it may block. A session that breaks in between
// fails the call: it is not repeated, since stdin might arrive twice.
func (x *Execution) act(do func(execution.Session) error) error {
	select {
	case <-x.done:
		if x.receipt == nil {
			return x.left
		}
		return drover.Errorf(drover.Conflict, "execution %s ended", x.id)
	default:
		return do(x.current())
	}
}

// current is the session of the latest attachment; reattach replaces it.
func (x *Execution) current() execution.Session {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.session
}

// pump moves frames from the session into the journal until the execution ended or ctx does. It returns how it ended,
// and whether that is known; else it may run on. Nobody hears of the end before it is written down: see conclude.
func (x *Execution) pump(ctx context.Context) (receipt execution.Receipt, known bool) {
	for {
		if !x.awaitRoom(ctx) {
			return x.lost(ctx, context.Cause(ctx)), x.use.GoneReason() != nil
		}
		f, err := x.current().Next(ctx)
		switch {
		case err != nil && x.reattach(ctx, err):
			continue
		case err != nil:
			if errors.Is(err, io.EOF) {
				err = drover.Errorf(drover.Gone, "the session ended without a receipt")
			}
			return x.lost(ctx, err), x.use.GoneReason() != nil
		case f.Receipt != nil:
			receipt = *f.Receipt
			receipt.ExecutionID = x.id
			x.checkReceipt(&receipt)
			return receipt, true
		}
		x.take(f)
	}
}

// take adds one frame to the journal, cuts the stream to the window and wakes the readers.
func (x *Execution) take(f execution.Frame) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if f.Started {
		x.pid = f.Pid
		x.stdin.tell(f.Stdin)
		if x.first.IsZero() {
			x.first = x.clock.Now()
		}
	} else {
		x.heardLocked(f)
		x.journal.Add(f.Stream, f.Offset, f.Data)
		l := x.journal.Of(f.Stream)
		l.Trim(l.End() - x.window)
		x.noteLocked(f.Stream)
	}
	x.wakeLocked()
}

// heardLocked tells how long the first output took.
func (x *Execution) heardLocked(f execution.Frame) {
	if x.heard || len(f.Data) == 0 {
		return
	}
	x.heard = true
	if x.wrote != nil && !x.begun.IsZero() {
		x.wrote(x.runner.Key(), x.clock.Now().Sub(x.begun))
	}
}

// awaitRoom waits while a reader is behind by the window, or while nobody reads an execution that may not run
// detached. It reports false when ctx ended.
func (x *Execution) awaitRoom(ctx context.Context) bool {
	for {
		x.mu.Lock()
		if x.roomLocked() {
			x.blocked = false
			x.mu.Unlock()
			return ctx.Err() == nil
		}
		x.blocked = true
		changed := x.changedLocked()
		x.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// roomSlack is the largest frame: with a frame more the window is full.
const roomSlack = 64 << 10

// roomLocked reports whether another frame may come. With readers the slowest decides, for each stream by itself.
// Without one, output flows while somebody waits for the end or the execution may run detached. Otherwise it stops
// shortly before the window would lose its first byte, unless the execution is about to be killed.
func (x *Execution) roomLocked() bool {
	out, err := x.journal.Of(execution.Stdout), x.journal.Of(execution.Stderr)
	if len(x.readers) == 0 {
		if x.waiters > 0 || x.spec.Detach != 0 {
			return true
		}
		return out.End() < x.window-roomSlack && err.End() < x.window-roomSlack || x.dropping
	}
	for r := range x.readers {
		if out.End()-max(r.from.Stdout, out.Start()) > x.window-roomSlack || err.End()-max(r.from.Stderr, err.Start()) > x.window-roomSlack {
			return false
		}
	}
	return true
}

// lost makes a receipt for an execution whose end nobody saw.
func (x *Execution) lost(ctx context.Context, why error) execution.Receipt {
	timer := x.clock.NewTimer(time.Second) // a session breaks before the event says why
	defer timer.Stop()
	select {
	case <-x.use.Gone():
	case <-ctx.Done():
	case <-timer.C():
	}
	if reason := x.use.GoneReason(); reason != nil {
		why = reason
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.gone = why
	cause := execution.CauseRunnerGone
	if errors.Is(why, runner.ErrOOM) {
		cause = execution.CauseOOM
	}
	r := execution.Receipt{
		ExecutionID: x.id, ExitCode: 137, Signal: 9, Cause: cause, Error: why.Error(), StartedAt: x.begun,
		StdoutBytes: x.journal.Of(execution.Stdout).End(), StderrBytes: x.journal.Of(execution.Stderr).End(), Truncated: true,
	}
	if !x.begun.IsZero() {
		r.Wall = x.clock.Now().Sub(x.begun)
	}
	return r
}

// end lets everybody know how it ended. What the runner keeps of it is cleared away after that.
func (x *Execution) end(receipt execution.Receipt, at time.Time) {
	x.use.Done()
	x.mu.Lock()
	x.stopReaperLocked()
	if x.overdue != nil {
		x.overdue.Stop()
	}
	x.receipt, x.endedAt = &receipt, at
	close(x.done)
	x.wakeLocked()
	x.mu.Unlock()
}

// clearAway lets the runner forget an execution that ended.
func (x *Execution) clearAway() {
	if session := x.current(); session != nil { // else it was only remembered
		_ = session.Close() // it has ended, or is not reached any more
	}
}

// leave lets go of an execution that may run on: whoever reads it or waits for it is told to ask again.
func (x *Execution) leave() {
	x.use.Done()
	x.mu.Lock()
	x.stopReaperLocked()
	if x.overdue != nil {
		x.overdue.Stop()
	}
	x.left = drover.Errorf(drover.Unavailable, "this server does not keep execution %s any more: ask again", x.id)
	close(x.done)
	x.wakeLocked()
	x.mu.Unlock()
	runtime.Gosched()
	execution.LetGo(x.current())
}

// changedLocked returns a channel that is closed at the next change.
func (x *Execution) changedLocked() <-chan struct{} {
	x.awaited = true
	return x.wake
}

// wakeLocked tells everybody who waits that something changed. Without a waiter the channel stays: most frames find
// none, and a new channel for each would be wasted.
func (x *Execution) wakeLocked() {
	if x.awaited {
		close(x.wake)
		x.wake, x.awaited = make(chan struct{}), false
	}
}

// attachedLocked notes a new reader: nobody kills the execution for being deserted while it is there.
func (x *Execution) attachedLocked() {
	x.visited = true
	x.stopReaperLocked()
	x.wakeLocked()
}

// stopReaperLocked calls the pending kill off. A kill whose timer has fired already looks again under the lock
// whether the execution is deserted.
func (x *Execution) stopReaperLocked() {
	if x.reaper != nil {
		x.reaper.Stop()
		x.reaper = nil
	}
}

// detachedLocked decides what becomes of an execution whose last reader left.
func (x *Execution) detachedLocked() {
	if x.desertedLocked() && x.spec.Detach >= 0 {
		x.killSoonLocked(x.spec.Detach)
	}
	x.wakeLocked()
}

// desertedLocked reports whether nobody cares for it: no reader, nor, as long as none has come, anyone who waits.
func (x *Execution) desertedLocked() bool {
	return x.receipt == nil && len(x.readers) == 0 && (x.visited || x.waiters == 0)
}

// holdAgain is when a server looks again whether its leases hold.
const holdAgain = time.Second

// killSoonLocked kills it after d, unless somebody attaches before. A server that stood still, or is cut off, kills nothing: its readers
// may be at another one by now.
func (x *Execution) killSoonLocked(d time.Duration) {
	x.stopReaperLocked()
	x.reaper = x.clock.AfterFunc(d, func() { // ends at once or, with the node away, with the clock's timeout
		x.mu.Lock()
		deserted := x.desertedLocked()
		if deserted && !x.use.Holds() {
			x.killSoonLocked(holdAgain)
			x.mu.Unlock()
			return
		}
		x.dropping = x.dropping || deserted
		x.wakeLocked() // what it still writes must not keep it from ending
		x.mu.Unlock()
		if !deserted {
			return
		}
		ctx, cancel := x.clock.WithTimeout(x.base, 10*time.Second)
		defer cancel()
		if x.Signal(ctx, "KILL") != nil {
			x.stop()
		}
	})
}
