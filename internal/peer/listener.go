package peer

import (
	"net"
	"sync"
)

// listener gives out connections that were sorted for it.
type listener struct {
	addr net.Addr
	in   chan net.Conn

	once   sync.Once
	closed chan struct{}
}

func newListener(addr net.Addr, most int) *listener {
	return &listener{addr: addr, in: make(chan net.Conn, most), closed: make(chan struct{})}
}

// put hands a connection over. It is closed if nobody takes it.
func (l *listener) put(c net.Conn) {
	select {
	case <-l.closed:
	default:
		select {
		case l.in <- c:
			return
		default: // nobody accepts any more
		}
	}
	_ = c.Close()
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case <-l.closed:
		return nil, net.ErrClosed
	default:
	}
	select {
	case c := <-l.in:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return l.addr }

// Close implements net.Listener: connections that nobody accepted are closed. It may be called twice.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	for {
		select {
		case c := <-l.in:
			_ = c.Close()
		default:
			return nil
		}
	}
}
