package executor

import (
	"context"
	"slices"
	"sync"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
)

// input is how far an execution's stdin has come. Whoever holds the turn writes, so that bytes keep their order and each is
// counted once. A write that was begun is never given up, as nobody could say how much of it arrived.
type input struct {
	turn chan struct{} // holds one element while nobody writes

	mu      sync.Mutex // guards what follows
	session int        // counts the sessions, each of which tells how much the command was given before it
	told    bool       // by the present session
	at      int64      // bytes that the command was given
	early   int64      // of them, those of the present session before it told
	known   bool       // else a supervisor or another backend does not tell
	lost    bool       // a session broke, and the next one has not told yet
}

// anywhere is the offset of who writes behind whatever came before.
const anywhere = -1

func newInput() *input {
	in := &input{turn: make(chan struct{}, 1)}
	in.turn <- struct{}{}
	return in
}

// change says that there is another session.
func (in *input) change() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.session++
	in.told, in.early, in.lost = false, 0, true
}

// current is the present session's number.
func (in *input) current() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.session
}

// tell takes what the present session says of what came before it; nil: it does not know.
func (in *input) tell(at *int64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.told, in.lost, in.known = true, false, at != nil
	if at != nil {
		in.at = *at + in.early
	}
}

// position says where stdin goes on; soon: it will be known when a session has told.
func (in *input) position() (at int64, known, soon bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.at, in.known, in.lost
}

// wrote counts what was written to a session. One that failed is of no use: the next one tells how far it came.
func (in *input) wrote(session, n int, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case session != in.session: // that was counted
	case err == nil && in.told:
		in.at += int64(n)
	case err == nil:
		in.early += int64(n)
	case drover.CodeOf(err) != drover.Conflict && drover.CodeOf(err) != drover.Invalid:
		in.lost = true
	}
}

// takeTurn waits until nobody writes. Errors: ctx's; once the execution has ended, as act.
func (x *Execution) takeTurn(ctx context.Context) error {
	select {
	case <-x.stdin.turn:
		return nil
	case <-x.done:
		return x.act(func(execution.Session) error { return nil })
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// closeStdin ends stdin behind the offset. A session that breaks meanwhile does not keep the command waiting for the end: the next one is
// told, but of a terminal, which would take each for a key. Errors: those of act; Conflict: bytes before the end did not arrive; ctx's.
func (x *Execution) closeStdin(ctx context.Context, from int64) error {
	if err := x.takeTurn(ctx); err != nil {
		return err
	}
	defer func() { x.stdin.turn <- struct{}{} }()
	if at, known, lost := x.stdin.position(); from != anywhere && known && (lost || from != at) {
		return drover.Errorf(drover.Conflict, "stdin of execution %s does not end at byte %d: attach again", x.id, from)
	}
	for wait := firstRetry; ; wait = min(2*wait, maxRetry) {
		limit, cancel := x.clock.WithTimeout(ctx, answerWithin)
		err := x.act(func(s execution.Session) error { return s.CloseStdin(limit) })
		cancel()
		code := drover.CodeOf(err)
		if err == nil || x.spec.TTY || code == drover.Conflict || code == drover.Invalid || !clock.Sleep(ctx, x.clock, wait) {
			return err
		}
		select {
		case <-x.done:
			return err
		default:
		}
	}
}

// write gives the command the bytes, which begin at the offset, but for those that it was given before. It returns the offset behind
// them. Errors: those of act; Conflict: bytes before them did not arrive; ctx's, after which they may arrive yet.
func (x *Execution) write(ctx context.Context, from int64, p []byte) (int64, error) {
	if err := x.takeTurn(ctx); err != nil {
		return from, err
	}
	at, known, lost := x.stdin.position()
	end := at + int64(len(p))
	if from != anywhere {
		end = from + int64(len(p))
		given := end <= at
		if lost || !known || from > at || given {
			x.stdin.turn <- struct{}{}
			if lost || !known || from > at {
				return from, drover.Errorf(drover.Conflict, "stdin of execution %s does not go on at byte %d: attach again", x.id, from)
			}
			return end, nil
		}
		p = p[at-from:]
	}
	p = slices.Clone(p) // it may be needed after this has returned
	done := make(chan error, 1)
	go func() { // ends with the session's answer, or the session
		x.mu.Lock()
		to, number := x.session, x.stdin.current()
		x.mu.Unlock()
		err := x.act(func(execution.Session) error { return to.Write(x.base, p) })
		x.stdin.wrote(number, len(p), err)
		x.stdin.turn <- struct{}{}
		done <- err
	}()
	select {
	case err := <-done:
		return end, err
	case <-ctx.Done():
		return from, context.Cause(ctx)
	}
}
