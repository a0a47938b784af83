package supervisor

import (
	"context"
	"encoding/binary"
	"io"
	"sync"
	"sync/atomic"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// session is a execution.Session on a channel.
type session struct {
	k     *call
	id    string
	keep  bool          // what the command leaves behind lives on, in its group
	over  chan struct{} // closed after the receipt, an error, or Close
	end   sync.Once     // of over
	close sync.Once
	spent atomic.Pointer[func()] // removes the group of an execution that has ended
	left  atomic.Bool            // its user went

	// Owned by the caller of Next.
	first    *message // was read by the start
	expected [2]int64 // offsets of the next bytes
	told     [2]int64 // acknowledged
	finished bool

	wmu     sync.Mutex
	written int64 // stdin; guarded by wmu
	eof     bool  // guarded by wmu
}

// newSession waits for the first frame, so that a refused start or attach is an error at once.
func (c *Client) newSession(ctx context.Context, k *call, id string, from execution.Offsets) (*session, error) {
	s := &session{k: k, id: id, over: make(chan struct{}), expected: [2]int64{from.Stdout, from.Stderr}}
	s.told = s.expected
	m, err := k.next(ctx)
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	s.first = &m
	return s, nil
}

// Next implements execution.Session.
func (s *session) Next(ctx context.Context) (execution.Frame, error) {
	if s.finished {
		return execution.Frame{}, io.EOF
	}
	for {
		m, err := s.message(ctx)
		if err != nil {
			return execution.Frame{}, err
		}
		switch m.kind {
		case wire.KindStarted:
			d := wire.Decoder{B: m.payload}
			f := execution.Frame{Started: true, Pid: int(d.Int())}
			if d.Err == nil && len(d.B) > 0 { // else the supervisor is an older one
				f.Stdin = new(d.Int())
			}
			return f, d.Err
		case wire.KindData:
			return s.data(m)
		case wire.KindExit:
			return s.exit(ctx, m)
		default: // from a newer supervisor
		}
	}
}

// message returns the next one.
func (s *session) message(ctx context.Context) (message, error) {
	if s.first != nil {
		m := *s.first
		s.first = nil
		return m, nil
	}
	s.ack()
	return s.k.next(ctx)
}

// ack acknowledges streams of which much was consumed: for each little the supervisor would be woken in vain.
func (s *session) ack() {
	for i := range s.expected {
		if s.expected[i]-s.told[i] >= wire.Window/4 {
			s.told[i] = s.expected[i]
			_ = s.k.c.write(wire.Ack(uint8(i)+uint8(execution.Stdout), s.k.id, s.told[i])) // next reports a lost connection
		}
	}
}

// data translates a frame of output. Skipped says that the supervisor has dropped bytes that this session did not read in time.
func (s *session) data(m message) (execution.Frame, error) {
	offset, p, err := wire.ParseData(m.payload)
	if err != nil || m.stream < execution.Stdout || m.stream > execution.Stderr {
		return execution.Frame{}, drover.Errorf(drover.Internal, "supervisor sent a malformed frame")
	}
	i := m.stream - execution.Stdout
	f := execution.Frame{Stream: m.stream, Offset: offset, Data: p, Skipped: offset > s.expected[i]}
	s.expected[i] = offset + int64(len(p))
	return f, nil
}

// exit takes the receipt. The supervisor keeps it until Close: who writes it down first, and is killed before that,
// gets it again.
func (s *session) exit(ctx context.Context, m message) (execution.Frame, error) {
	d := wire.Decoder{B: m.payload}
	r := d.Receipt()
	if d.Err != nil {
		return execution.Frame{}, d.Err
	}
	s.finished = true
	s.k.c.completeGroup(s.id, &r)
	s.spent.Store(new(func() { s.k.c.leaveGroup(ctx, s.id, s.keep) }))
	s.end.Do(func() { close(s.over) })
	return execution.Frame{Receipt: &r}, nil
}

// Write implements execution.Session. It returns when the program was given the bytes, or will be: another session goes on behind
// them. After the program ended it is an error Gone.
func (s *session) Write(ctx context.Context, p []byte) error {
	s.wmu.Lock()
	defer s.wmu.Unlock()
	if s.eof {
		return drover.Errorf(drover.Conflict, "stdin was closed before")
	}
	select {
	case <-s.over:
		return drover.Errorf(drover.Gone, "the session is over")
	default:
	}
	n, err := s.k.send(ctx, execution.Stdin, s.written, p, s.over)
	s.written += int64(n)
	if err == nil {
		err = s.k.consumed(ctx, s.written, s.over)
	}
	if err == nil && s.left.Load() && (n < len(p) || !s.k.given(s.written)) { // another session goes on before them
		err = drover.Errorf(drover.Gone, "the session was closed before the program was given the bytes")
	}
	return err
}

// CloseStdin implements execution.Session.
func (s *session) CloseStdin(context.Context) error {
	s.wmu.Lock()
	defer s.wmu.Unlock()
	if s.eof {
		return nil
	}
	s.eof = true
	return s.k.c.write(wire.Frame(wire.KindEnd, uint8(execution.Stdin), s.k.id, nil))
}

// Resize implements execution.Session.
func (s *session) Resize(_ context.Context, size execution.WindowSize) error {
	p := binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(nil, size.Rows), size.Cols)
	return s.k.c.write(wire.Frame(wire.KindResize, 0, s.k.id, p))
}

// Signal implements execution.Session. Errors: Invalid for an unknown name.
func (s *session) Signal(_ context.Context, name string) error {
	if err := wire.CheckSignal(name); err != nil {
		return err
	}
	var e wire.Encoder
	e.Str(name)
	return s.k.c.write(wire.Frame(wire.KindSignal, 0, s.k.id, e.B))
}

// Close implements execution.Session.
func (s *session) Close() error {
	s.leave(0)
	return nil
}

// Lost is Close for a user who vanished and may come back: as after a loss of the agent, the execution has the grace,
// and its receipt is kept.
func (s *session) Lost() { s.leave(wire.CloseLost) }

// Untaken is Close for a user who may not have got the receipt: the supervisor keeps it for the next.
func (s *session) Untaken() { s.leave(wire.CloseUntaken) }

// leave ends the session once; how tells the supervisor whether its user may come back.
func (s *session) leave(how uint8) {
	s.close.Do(func() {
		s.left.Store(true)
		s.end.Do(func() { close(s.over) })
		s.k.forget()
		_ = s.k.c.write(wire.Frame(wire.KindClose, how, s.k.id, nil))
		s.k.end(drover.Errorf(drover.Gone, "the session was closed"))
		if leave := s.spent.Load(); leave != nil && how == 0 {
			(*leave)()
		} else { // it may have to complete the receipt again
			s.k.c.abandonGroup(s.id, s.keep)
		}
	})
}
