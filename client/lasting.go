package client

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// maxUngiven is how much stdin a Lasting keeps that the command was not given yet, in bytes: Write waits for more.
const maxUngiven = 1 << 20

// attempts is how often a Lasting tries to attach again, over all its clients, before it gives up.
const attempts = 20

// Lasting is an attachment that outlives connections and servers. When one breaks it goes on at the next of its clients, from
// the bytes that it has reached, so that nothing of stdout, stderr and stdin is lost or doubled. It is an execution.Session.
// Next does the work: somebody has to call it until the receipt, also while others write. Start the command with Spec.Detach,
// so that it outlives the time between two attachments.
type Lasting struct {
	clients []*Client

	// Owned by Next's caller.
	from execution.Offsets
	next int // client

	sending sync.Mutex // held while stdin is sent, so that it keeps its order

	mu      sync.Mutex // guards what follows
	session *Session
	ready   bool          // it has started, and what was not given is sent again
	changed chan struct{} // closed when any of it changes
	id      string
	first   int64  // offset of the first byte of pending
	pending []byte // stdin that the command was not given, as far as is known
	eof     bool   // after it
	over    error
}

var _ execution.Session = (*Lasting)(nil)

// ExecuteLasting starts a command at the first of the clients, whose servers are those of one cluster, and stays attached to it at
// whichever answers. Errors: as Client.Execute; the start itself is not repeated.
func ExecuteLasting(ctx context.Context, clients []*Client, runner string, r execution.Request) (*Lasting, error) {
	if len(clients) == 0 {
		return nil, drover.Errorf(drover.Invalid, "no clients")
	}
	s, err := clients[0].execute(ctx, runner, r, resuming())
	if err != nil {
		return nil, err
	}
	l := &Lasting{clients: clients, session: s, changed: make(chan struct{})}
	s.given = l.given
	return l, nil
}

// ID is the execution's id, known from the first frame on.
func (l *Lasting) ID() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.id
}

// Next serves execution.Session. Errors: as Session.Next, once nobody lets it attach any more; before it has started it does not
// attach again.
func (l *Lasting) Next(ctx context.Context) (execution.Frame, error) {
	for {
		s, err := l.attached(ctx)
		if err != nil {
			return execution.Frame{}, l.end(err)
		}
		f, err := s.Next(ctx)
		switch {
		case err == nil && f.Started:
			first, err := l.started(ctx, s, f)
			if err != nil {
				return f, l.end(err)
			}
			if first {
				return f, nil
			}
		case err == nil:
			if l.reached(f); f.Receipt != nil {
				_ = l.end(io.EOF)
			}
			return f, nil
		case ctx.Err() != nil:
			return f, err
		case drover.CodeOf(err) == drover.Unavailable && l.ID() != "":
			l.drop(s)
		default:
			return f, l.end(err)
		}
	}
}

// attached returns the session, a new one if the last broke.
func (l *Lasting) attached(ctx context.Context) (*Session, error) {
	l.mu.Lock()
	s, id, over := l.session, l.id, l.over
	l.mu.Unlock()
	if s != nil || over != nil {
		return s, over
	}
	var err error
	for range attempts {
		l.next = (l.next + 1) % len(l.clients)
		s, err = l.clients[l.next].attach(ctx, id, l.from, resuming())
		if err == nil {
			s.given = l.given
			l.mu.Lock()
			l.session = s
			l.mu.Unlock()
			return s, nil
		}
		if code := drover.CodeOf(err); ctx.Err() != nil || code != drover.Unavailable && code != drover.NotLeader {
			break
		}
		if !pause(ctx) {
			return nil, drover.Errorf(drover.Canceled, "attaching again: %w", context.Cause(ctx))
		}
	}
	return nil, drover.Errorf(drover.CodeOf(err), "attaching to the execution again: %w", err)
}

// started sends stdin again that the command was not given. Only the first start is told.
func (l *Lasting) started(ctx context.Context, s *Session, f execution.Frame) (first bool, err error) {
	l.sending.Lock()
	defer l.sending.Unlock()
	l.mu.Lock()
	first, l.id = l.id == "", s.ID()
	pending, eof, at := l.pending, l.eof, l.first
	l.ready = true
	l.wakeLocked()
	l.mu.Unlock()
	switch {
	case len(pending) == 0 && !eof:
		return first, nil
	case f.Stdin == nil && l.hasEnded(ctx):
		return first, nil // its output and receipt come yet
	case f.Stdin == nil || *f.Stdin != at:
		return first, drover.Errorf(drover.Unavailable, "execution %s does not tell where its stdin goes on", l.ID())
	case len(pending) > 0:
		err = s.Write(ctx, pending)
	}
	if err == nil && eof {
		err = s.CloseStdin(ctx)
	}
	if ctx.Err() != nil {
		return first, err
	}
	return first, nil // a connection that broke is told by its Next
}

// hasEnded says whether the command has ended, so that nothing becomes of its stdin any more.
func (l *Lasting) hasEnded(ctx context.Context) bool {
	x, err := l.clients[l.next].Execution(ctx, l.ID())
	return err == nil && !x.Running
}

// Write serves execution.Session: it keeps the bytes until the command was given them, and waits while that are many. Errors: those
// that ended the attachment; ctx's.
func (l *Lasting) Write(ctx context.Context, p []byte) error {
	for len(p) > 0 {
		n := min(len(p), maxUngiven)
		if err := l.room(ctx, n); err != nil {
			return err
		}
		l.sending.Lock()
		l.mu.Lock()
		l.pending = append(l.pending, p[:n]...)
		s, ready := l.session, l.ready
		l.mu.Unlock()
		if ready {
			_ = s.Write(ctx, p[:n]) // a connection that broke is told by its Next; they are kept
		}
		l.sending.Unlock()
		p = p[n:]
	}
	return nil
}

// room waits until n more bytes may be kept.
func (l *Lasting) room(ctx context.Context, n int) error {
	for {
		l.mu.Lock()
		over, eof, room, changed := l.over, l.eof, len(l.pending) == 0 || len(l.pending)+n <= maxUngiven, l.changed
		l.mu.Unlock()
		switch {
		case over != nil:
			return drover.Errorf(drover.Conflict, "the attachment is over: %w", over)
		case eof:
			return drover.Errorf(drover.Conflict, "stdin was closed before")
		case room:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return drover.Errorf(drover.Canceled, "waiting for the command to read: %w", context.Cause(ctx))
		}
	}
}

// CloseStdin serves execution.Session.
func (l *Lasting) CloseStdin(ctx context.Context) error {
	l.sending.Lock()
	defer l.sending.Unlock()
	l.mu.Lock()
	l.eof = true
	s, ready := l.session, l.ready
	l.mu.Unlock()
	if ready {
		_ = s.CloseStdin(ctx) // as in Write
	}
	return nil
}

// Resize serves execution.Session. Errors: Unavailable while it is not attached.
func (l *Lasting) Resize(ctx context.Context, size execution.WindowSize) error {
	return l.now(func(s *Session) error { return s.Resize(ctx, size) })
}

// Signal serves execution.Session. Errors: Unavailable while it is not attached.
func (l *Lasting) Signal(ctx context.Context, name string) error {
	return l.now(func(s *Session) error { return s.Signal(ctx, name) })
}

func (l *Lasting) now(do func(*Session) error) error {
	l.mu.Lock()
	s, ready := l.session, l.ready
	l.mu.Unlock()
	if !ready {
		return drover.Errorf(drover.Unavailable, "not attached at the moment")
	}
	return do(s)
}

// Close serves execution.Session.
func (l *Lasting) Close() error {
	_ = l.end(drover.Errorf(drover.Canceled, "it was closed"))
	l.mu.Lock()
	s := l.session
	l.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.Close()
}

// pause waits a moment between two attempts; false if ctx ended.
func pause(ctx context.Context) bool {
	moment, cancel := context.WithTimeout(ctx, 250*time.Millisecond)
	defer cancel()
	<-moment.Done()
	return ctx.Err() == nil
}

// reached notes how far the output has come.
func (l *Lasting) reached(f execution.Frame) {
	at := f.Offset + int64(len(f.Data))
	switch {
	case f.Receipt != nil:
	case f.Stream == execution.Stderr:
		l.from.Stderr = at
	default:
		l.from.Stdout = at
	}
}

// given drops what the command was given.
func (l *Lasting) given(at int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.givenLocked(at)
}

func (l *Lasting) givenLocked(at int64) {
	n := min(at-l.first, int64(len(l.pending)))
	if n <= 0 {
		return
	}
	l.pending, l.first = l.pending[n:], l.first+n
	l.wakeLocked()
}

// drop lets go of a session that broke.
func (l *Lasting) drop(s *Session) {
	_ = s.Close() // it broke
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session, l.ready = nil, false
}

// end says to all that there is no more.
func (l *Lasting) end(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over == nil {
		l.over = err
		l.wakeLocked()
	}
	return err
}

func (l *Lasting) wakeLocked() {
	close(l.changed)
	l.changed = make(chan struct{})
}
