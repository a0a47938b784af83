package executions

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/guest/buffer"
	"github.com/drover-project/drover/internal/node/supervisor/guest/channel"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
	"github.com/drover-project/drover/internal/stack"
)

// Session is one agent channel on an execution: a reader of its output and a writer of its stdin.
type Session struct {
	channel.Channel
	table *Table
	in    *channel.Inbox // stdin from this session

	once    sync.Once
	untaken atomic.Bool   // whoever read did not get the receipt
	ready   chan struct{} // closed when x is set, or will never be
	x       *command

	// Guarded by x.mu.
	pos, acked [2]int64
	closed     bool
	delivered  bool // the receipt was sent
}

// Session returns a session on a channel, which has no execution yet: Start or Attach gives it one.
func (t *Table) Session(c channel.Channel) *Session {
	s := &Session{Channel: c, table: t, ready: make(chan struct{})}
	s.in = channel.NewInbox(func(offset int64) { c.Ack(uint8(execution.Stdin), offset) })
	return s
}

// Start starts an execution and serves it to its end. fds are the open files of its control group, if it has one: a
// folder to be born in, then its cgroup.procs, or those to join.
func (s *Session) Start(x wire.Exec, fds []int) {
	stack.Grow8K()
	ex, receipt, err := s.table.start(x, fds, s)
	switch {
	case err != nil:
		close(s.ready)
		s.Fail(err)
	case receipt != nil:
		close(s.ready)
		s.Agent.Remove(s.ID)
		s.sendReceipt(*receipt)
	default:
		s.serve(ex)
	}
}

// Attach joins an execution and serves its output from the offsets on, to its end.
func (s *Session) Attach(id string, from execution.Offsets) {
	x, err := s.table.find(id)
	if err != nil {
		close(s.ready)
		s.Fail(err)
		return
	}
	x.join(s, from)
	s.serve(x)
}

// serve tells the pid and then sends output until the receipt was sent, the session is closed or the agent is gone.
func (s *Session) serve(x *command) {
	s.x = x
	close(s.ready)
	var e wire.Encoder
	e.Int(int64(x.child.Pid))
	e.Int(x.feedFrom(s))
	if x.spec.Stdin {
		go s.feed() // ends when the session or the execution ends
	}
	if s.Send(wire.KindStarted, e.B) != nil {
		return // run notices it and calls gone
	}
	for s.send() {
	}
}

// send sends one frame of output, or the receipt; false when there is nothing more to send for ever.
func (s *Session) send() bool {
	const head = wire.HeaderSize + 8
	x := s.x
	x.mu.Lock()
	for {
		if s.closed {
			x.mu.Unlock()
			return false
		}
		if i, ok := s.sendable(); ok {
			b := buffer.Get()
			defer buffer.Put(b)
			st := &x.out[i]
			// A late reader skips what the ring has dropped; the frame's offset shows the gap.
			s.pos[i] = max(s.pos[i], st.start)
			space := min(int64(wire.DataSize), max(1, s.acked[i]+wire.Window-s.pos[i]))
			n := st.get(s.pos[i], b[head:head+space])
			h := wire.DataHead(uint8(i)+uint8(execution.Stdout), s.ID, s.pos[i], n)
			copy(b[:], h[:])
			s.pos[i] += int64(n)
			x.mu.Unlock()
			return s.Agent.Write(b[:head+n]) == nil
		}
		// The receipt is the last frame: first everything that both streams hold.
		if x.receipt != nil && s.pos[0] >= x.out[0].end && s.pos[1] >= x.out[1].end {
			r := *x.receipt
			s.delivered = true
			x.mu.Unlock()
			s.sendReceipt(r)
			return false
		}
		x.cond.Wait()
	}
}

// sendable picks the stream with more to send. Caller holds x.mu.
func (s *Session) sendable() (int, bool) {
	best, most := -1, int64(0)
	// The stream with more bytes goes first, and one whose reader has a full window unacknowledged waits.
	for i := range s.x.out {
		st := &s.x.out[i]
		waiting := st.end - max(s.pos[i], st.start)
		unacked := s.pos[i] - s.acked[i]
		if waiting > most && unacked < wire.Window {
			best, most = i, waiting
		}
	}
	return best, best >= 0
}

// sendReceipt sends the last frame. Whether it arrived shows when the agent closes the channel or is lost.
func (s *Session) sendReceipt(r execution.Receipt) {
	var e wire.Encoder
	e.Receipt(r)
	_ = s.Send(wire.KindExit, e.B)
}

// Frame takes a frame of the agent's. It does not block.
func (s *Session) Frame(h wire.Header, p []byte) {
	switch h.Kind {
	case wire.KindData:
		s.in.Data(p)
	case wire.KindEnd:
		s.in.End()
	case wire.KindAck:
		if offset, err := wire.ParseAck(p); err == nil {
			s.ack(h.Stream, offset)
		}
	case wire.KindResize:
		if len(p) >= 4 && s.running() && s.x.stdio.TTY != nil {
			s.x.stdio.Resize(execution.WindowSize{Rows: binary.LittleEndian.Uint16(p), Cols: binary.LittleEndian.Uint16(p[2:])})
		}
	case wire.KindSignal:
		d := wire.Decoder{B: p}
		name := d.Str()
		go func() { // ends when the signal was sent; a KILL when the tree is dead
			<-s.ready
			if s.x != nil {
				_ = s.x.signal(name) // the agent checked the name; an ended execution tells by its receipt
			}
		}()
	default: // from a newer agent
	}
}

// running reports whether the execution was started.
func (s *Session) running() bool {
	select {
	case <-s.ready:
		return s.x != nil
	default:
		return false
	}
}

// ack notes what the agent has taken, which makes room in the window and in the ring. An offset beyond what was sent counts as what was
// sent.
func (s *Session) ack(stream uint8, offset int64) {
	i := int(stream) - int(execution.Stdout)
	if i < 0 || i > 1 || !s.running() {
		return
	}
	x := s.x
	x.mu.Lock()
	defer x.mu.Unlock()
	s.acked[i] = max(s.acked[i], min(offset, s.pos[i]))
	x.out[i].acked = max(x.out[i].acked, s.acked[i])
	x.cond.Broadcast()
}

// Untaken says that whoever read did not get the receipt, though it was sent. It comes before Gone.
func (s *Session) Untaken() { s.untaken.Store(true) }

// Gone ends the session: the agent closed it, or (lost) vanished and may come back. It does not block.
func (s *Session) Gone(lost bool) {
	s.once.Do(func() {
		s.in.Close()
		go func() { // ends at once, or when the start that is under way ends
			<-s.ready
			if s.x == nil {
				return
			}
			s.x.mu.Lock()
			s.closed = true
			delivered := s.delivered && !s.untaken.Load()
			s.x.mu.Unlock()
			s.x.leave(s, lost, delivered)
		}()
	})
}

// feed writes this session's stdin to the program.
func (s *Session) feed() {
	x := s.x
	for {
		p, ok := s.in.Take()
		if !ok {
			break
		}
		if !x.give(s, p) {
			return
		}
		s.in.Done(len(p))
	}
	// Only an end that the agent sent closes stdin. After a lost session the next one may go on writing.
	if s.in.Ended() && x.feeds(s) {
		x.endStdin()
	}
}
