package server

import (
	"errors"
	"os"
	"sync"
	"syscall"

	"github.com/drover-project/drover/internal/node/supervisor/guest/channel"
	"github.com/drover-project/drover/internal/node/supervisor/guest/process"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
	"github.com/drover-project/drover/internal/stack"
)

// handler is what a channel's frames go to. Both methods are called by the connection's reader and must not block.
type handler interface {
	Frame(h wire.Header, payload []byte)
	// Gone is called once: the agent closed the channel, or (lost) it or its own user vanished.
	Gone(lost bool)
}

// conn is one agent's connection.
type conn struct {
	s   *Server
	f   *os.File
	raw syscall.RawConn
	wmu sync.Mutex // serializes frames
	buf []byte     // owned by run
	fds []int      // received and not yet taken; owned by run

	mu       sync.Mutex
	closed   bool               // guarded by mu
	channels map[uint32]handler // guarded by mu
}

// readBuffer holds many small frames; one that is longer gets a buffer of its own.
const readBuffer = 16 << 10

// newConn takes over a connected, non-blocking socket; run closes it.
func newConn(s *Server, fd int) *conn {
	return &conn{s: s, f: os.NewFile(uintptr(fd), "agent"), channels: map[uint32]handler{}}
}

// run reads frames until the agent is gone.
func (c *conn) run() {
	stack.Grow8K()
	c.s.arrived(c)
	defer c.s.departed(c)
	defer c.drop()
	var err error
	if c.raw, err = c.f.SyscallConn(); err != nil {
		return
	}
	if c.hello() != nil {
		return
	}
	for {
		h, p, err := c.next()
		if err != nil || c.handle(h, p) != nil {
			return
		}
	}
}

// drop tells all channels that the agent is lost, not that it closed them: their executions are kept for one that comes back. Descriptors
// that no request took are closed.
func (c *conn) drop() {
	c.mu.Lock()
	c.closed = true
	channels := c.channels
	c.channels = nil
	c.mu.Unlock()
	for _, h := range channels {
		h.Gone(true)
	}
	_ = c.f.Close()
	process.CloseAll(c.fds)
}

// hello agrees on the version.
func (c *conn) hello() error {
	h, p, err := c.next()
	if err != nil || h.Kind != wire.KindHello {
		return errors.New("no hello")
	}
	theirs, err := wire.DecodeHello(p)
	if err != nil {
		return err
	}
	version := min(theirs.Max, wire.Version)
	ours := wire.Hello{Min: version, Max: version, Pid: os.Getpid(), ID: c.s.launcher.Boot().ID}
	if version < wire.MinVersion || version < theirs.Min {
		ours.Failure = "no common protocol version"
	}
	if err := c.Write(wire.Frame(wire.KindHello, 0, 0, ours.Encode())); err != nil || ours.Failure != "" {
		return errors.New("no common version")
	}
	return nil
}

// handle passes a frame on. An error ends the connection; one of a single request is answered on its channel instead.
func (c *conn) handle(h wire.Header, p []byte) error {
	switch h.Kind {
	case wire.KindOpen:
		fds := c.takeFds(int(h.Fds))
		if len(p) < 1 {
			process.CloseAll(fds)
			return wire.ErrMalformed
		}
		c.open(channel.Channel{Agent: c, ID: h.Channel}, wire.Op(p[0]), p[1:], fds)
	case wire.KindClose:
		if t := c.take(h.Channel); t != nil {
			if u, ok := t.(interface{ Untaken() }); ok && h.Stream == wire.CloseUntaken {
				u.Untaken()
			}
			t.Gone(h.Stream == wire.CloseLost)
		}
	default:
		c.mu.Lock()
		t := c.channels[h.Channel]
		c.mu.Unlock()
		if t != nil { // else: it ended while this was on its way
			t.Frame(h, p)
		}
	}
	return nil
}

// add lets a channel's frames go to h. After drop it does nothing, so h does not hear of the loss.
func (c *conn) add(channel uint32, h handler) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.channels[channel] = h
	}
}

// Remove forgets a channel.
func (c *conn) Remove(channel uint32) { c.take(channel) }

// take forgets a channel and returns what its frames went to.
func (c *conn) take(channel uint32) handler {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.channels[channel]
	delete(c.channels, channel)
	return h
}

// Write sends a whole frame.
func (c *conn) Write(b []byte) error {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	_, err := c.f.Write(b)
	return err
}

// next returns the next frame; the payload is valid until the following call.
func (c *conn) next() (wire.Header, []byte, error) {
	if err := c.fill(wire.HeaderSize); err != nil {
		return wire.Header{}, nil, err
	}
	h, err := wire.ParseHeader(c.buf)
	if err != nil {
		return h, nil, err
	}
	whole := wire.HeaderSize + int(h.Length)
	if err := c.fill(whole); err != nil {
		return h, nil, err
	}
	// The capacity ends with the payload, so that appending to it cannot write over the next frame.
	p := c.buf[wire.HeaderSize:whole:whole]
	c.buf = c.buf[whole:]
	return h, p, nil
}

// fill makes c.buf at least n bytes long.
func (c *conn) fill(n int) error {
	if len(c.buf) >= n {
		return nil
	}
	size := max(n, readBuffer)
	if cap(c.buf) < size { // handed-out payloads keep the old one
		c.buf = append(make([]byte, 0, size), c.buf...)
	}
	for len(c.buf) < n {
		got, err := c.receive(c.buf[len(c.buf):cap(c.buf)])
		if err != nil {
			return err
		}
		c.buf = c.buf[:len(c.buf)+got]
	}
	return nil
}

// receive waits in the runtime's poller, reads once, and keeps the descriptors that came along. Its error ends the connection, also when
// the agent has closed it.
func (c *conn) receive(b []byte) (n int, err error) {
	var oob [256]byte
	var oobn int
	rerr := c.raw.Read(func(fd uintptr) bool {
		n, oobn, _, _, err = syscall.Recvmsg(int(fd), b, oob[:], syscall.MSG_CMSG_CLOEXEC)
		return err != syscall.EAGAIN && err != syscall.EINTR
	})
	if rerr != nil {
		return 0, rerr
	}
	if err != nil {
		return 0, err
	}
	if oobn > 0 {
		c.takeRights(oob[:oobn])
	}
	if n == 0 {
		return 0, errors.New("agent is gone")
	}
	return n, nil
}

// takeRights keeps received descriptors in the order of their arrival, which is that of the frames that name them.
func (c *conn) takeRights(oob []byte) {
	messages, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return
	}
	for _, m := range messages {
		fds, err := syscall.ParseUnixRights(&m)
		if err == nil {
			c.fds = append(c.fds, fds...)
		}
	}
}

// takeFds hands out the next n descriptors. Fewer came if a message was cut; what needs more than there are fails by itself.
func (c *conn) takeFds(n int) []int {
	n = min(n, len(c.fds))
	fds := append([]int(nil), c.fds[:n]...)
	c.fds = c.fds[n:]
	return fds
}
