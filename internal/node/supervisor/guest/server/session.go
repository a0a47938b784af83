package server

import (
	"encoding/binary"
	"sync"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// session is one agent channel on an execution: a reader of its output and a writer of its stdin.
type session struct {
	c       *conn
	channel uint32
	in      *inbox // stdin from this session

	once  sync.Once
	ready chan struct{} // closed when x is set, or will never be
	x     *command

	// Guarded by x.mu.
	pos, acked [2]int64
	closed     bool
	delivered  bool // the receipt was sent
}

func newSession(c *conn, channel uint32) *session {
	s := &session{c: c, channel: channel, ready: make(chan struct{})}
	s.in = newInbox(func(offset int64) { _ = c.write(wire.Ack(uint8(execution.Stdin), channel, offset)) })
	return s
}

// start starts an execution and serves it.
func (s *session) start(x wire.Exec, fds []int) {
	ex, receipt, err := s.c.s.startExecution(x, fds, s)
	switch {
	case err != nil:
		close(s.ready)
		s.c.remove(s.channel)
		s.c.fail(s.channel, err)
	case receipt != nil:
		close(s.ready)
		s.c.remove(s.channel)
		s.sendReceipt(*receipt)
	default:
		s.serve(ex)
	}
}

// attach joins an execution and serves it.
func (s *session) attach(id string, from execution.Offsets) {
	x, err := s.c.s.find(id)
	if err != nil {
		close(s.ready)
		s.c.remove(s.channel)
		s.c.fail(s.channel, err)
		return
	}
	x.join(s, from)
	s.serve(x)
}

func (s *session) serve(x *command) {
	s.x = x
	close(s.ready)
	if x.spec.Stdin {
		go s.feed() // ends when the session or the execution ends
	}
	var e wire.Encoder
	e.Int(int64(x.child.pid))
	if s.c.write(wire.Frame(wire.KindStarted, 0, s.channel, e.B)) != nil {
		return // run notices it and calls gone
	}
	for s.send() {
	}
}

// send sends one frame of output, or the receipt; false when there is nothing more to send for ever.
func (s *session) send() bool {
	const head = wire.HeaderSize + 8
	x := s.x
	x.mu.Lock()
	for {
		if s.closed {
			x.mu.Unlock()
			return false
		}
		if i, ok := s.sendable(); ok {
			b := buffers.Get().(*frameBuffer)
			defer buffers.Put(b)
			st := &x.out[i]
			s.pos[i] = max(s.pos[i], st.start)
			space := min(int64(wire.DataSize), max(1, s.acked[i]+wire.Window-s.pos[i]))
			n := st.get(s.pos[i], b[head:head+space])
			h := wire.DataHead(uint8(i)+uint8(execution.Stdout), s.channel, s.pos[i], n)
			copy(b[:], h[:])
			s.pos[i] += int64(n)
			x.mu.Unlock()
			return s.c.write(b[:head+n]) == nil
		}
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
func (s *session) sendable() (int, bool) {
	best, most := -1, int64(0)
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

func (s *session) sendReceipt(r execution.Receipt) {
	var e wire.Encoder
	e.Receipt(r)
	_ = s.c.write(wire.Frame(wire.KindExit, 0, s.channel, e.B))
}

func (s *session) frame(h wire.Header, p []byte) {
	switch h.Kind {
	case wire.KindData:
		s.in.data(p)
	case wire.KindEnd:
		s.in.end()
	case wire.KindAck:
		if offset, err := wire.ParseAck(p); err == nil {
			s.ack(h.Stream, offset)
		}
	case wire.KindResize:
		if len(p) >= 4 && s.running() && s.x.tty != nil {
			s.x.resize(execution.WindowSize{Rows: binary.LittleEndian.Uint16(p), Cols: binary.LittleEndian.Uint16(p[2:])})
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
func (s *session) running() bool {
	select {
	case <-s.ready:
		return s.x != nil
	default:
		return false
	}
}

func (s *session) ack(stream uint8, offset int64) {
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

func (s *session) gone(lost bool) {
	s.once.Do(func() {
		s.in.close()
		go func() { // ends at once, or when the start that is under way ends
			<-s.ready
			if s.x == nil {
				return
			}
			s.x.mu.Lock()
			s.closed = true
			delivered := s.delivered
			s.x.mu.Unlock()
			s.x.leave(s, lost, delivered)
		}()
	})
}

// feed writes this session's stdin to the program.
func (s *session) feed() {
	x := s.x
	for {
		p, ok := s.in.take()
		if !ok {
			break
		}
		x.stdinMu.Lock()
		f := x.stdin
		x.stdinMu.Unlock()
		if f != nil {
			_, _ = f.Write(p) // a program that no longer reads: thrown away
		}
		s.in.done(len(p))
	}
	if s.in.ended() {
		x.endStdin()
	}
}
