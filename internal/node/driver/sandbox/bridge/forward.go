package bridge

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/egress"
	"github.com/drover-project/drover/network"
)

// maxConnections bounds what one forwarded port may hold at a time: more wait to be accepted.
const (
	maxConnections = 1024
	dialPatience   = 5 * time.Second
	acceptPause    = 10 * time.Millisecond
	inheritedWait  = time.Second
	inheritedLook  = 5 * time.Millisecond
)

// Forwarder passes TCP connections and datagrams on the machine's ports to a sandbox's. It works inside the agent: an
// agent restart cuts connections, and Forward begins anew.
type Forwarder struct {
	clock     clock.Clock
	listeners []io.Closer
	loops     sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]bool // guarded by mu
	closed bool              // guarded by mu
}

// Forward listens on the ports of the guest with the address. Those at the machine's addresses of IPv6 lead to the guest's, if it has one.
// Tasks of jobs on the bridge reach them, too. Errors: Unavailable, naming the port, when one is taken; nothing listens then.
func (n *Network) Forward(a netip.Addr, ports []network.PortMapping) (*Forwarder, error) {
	f := &Forwarder{clock: n.cfg.Clock, conns: map[net.Conn]bool{}}
	for _, p := range ports {
		port := p.To
		if port <= 0 {
			port = p.Value
		}
		to := a
		if host, err := netip.ParseAddr(p.HostIP); err == nil && host.Is6() && n.HasIPv6(a) {
			to = n.sixOf(a)
		}
		host, inside := net.JoinHostPort(p.HostIP, strconv.Itoa(p.Value)), netip.AddrPortFrom(to, uint16(port)) // a port
		err := f.freed(func() error { return f.listenTCP(host, inside) })
		if err == nil {
			err = f.freed(func() error { return f.listenUDP(host, inside) })
		}
		if err != nil {
			f.Close()
			return nil, drover.Errorf(drover.Unavailable, "forwarding port %q: %w", p.Label, err)
		}
	}
	return f, nil
}

// freed calls listen, and repeats it for a moment while the port is in use. A child that the agent had just forked when it closed the
// port, or was killed, holds the socket until the child's program runs.
func (f *Forwarder) freed(listen func() error) error {
	begin := f.clock.Now()
	err := listen()
	for errors.Is(err, syscall.EADDRINUSE) && f.clock.Now().Sub(begin) < inheritedWait {
		clock.Sleep(context.Background(), f.clock, inheritedLook) //nolint:forbidigo // bounded by the line above
		err = listen()
	}
	return err
}

// published are listeners that tasks of jobs on bridges reach.
var published = net.ListenConfig{Control: egress.Publish} // a constant

// listenTCP listens on the machine's address; what comes is passed until Close.
func (f *Forwarder) listenTCP(host string, to netip.AddrPort) error {
	l, err := published.Listen(context.Background(), "tcp", host) //nolint:forbidigo // an address is not looked up
	if err != nil {
		return err
	}
	f.listeners = append(f.listeners, l)
	f.loops.Go(func() { f.accept(l, to.String()) }) // ends with Close
	return nil
}

// Close ends all connections. Idempotent, also on nil.
func (f *Forwarder) Close() {
	if f == nil {
		return
	}
	for _, l := range f.listeners {
		_ = l.Close()
	}
	f.mu.Lock()
	f.closed = true
	for c := range f.conns {
		_ = c.Close()
	}
	f.mu.Unlock()
	f.loops.Wait()
}

// accept takes connections while fewer than maxConnections are open; the kernel's backlog holds the others.
func (f *Forwarder) accept(l net.Listener, to string) {
	free := make(chan struct{}, maxConnections)
	for {
		free <- struct{}{}
		in, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // the peer went, or descriptors are short
			<-free
			clock.Sleep(context.Background(), f.clock, acceptPause) //nolint:forbidigo // a moment: Close can wait for it
			continue
		}
		f.loops.Go(func() { // ends with the connection, which Close ends
			defer func() { <-free }()
			f.pass(in, to)
		})
	}
}

// pass connects to the sandbox and copies both ways until both directions have ended, or either fails.
func (f *Forwarder) pass(in net.Conn, to string) {
	defer f.forget(in)
	if !f.note(in) {
		return
	}
	out, err := net.DialTimeout("tcp", to, dialPatience)
	if err != nil {
		return // the peer sees the end
	}
	defer f.forget(out)
	if !f.note(out) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { copyHalf(out, in) })
	copyHalf(in, out)
	both.Wait()
}

// note remembers a connection; false when it is too late for it.
func (f *Forwarder) note(c net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.conns[c] = true
	}
	return !f.closed
}

// forget closes a connection that pass or peer had to do with, noted or not.
func (f *Forwarder) forget(c net.Conn) {
	_ = c.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, c)
}

// copyHalf copies one direction, and passes its end on.
func copyHalf(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if t, ok := to.(*net.TCPConn); ok && err == nil {
		_ = t.CloseWrite()
		return
	}
	_ = to.Close()
	_ = from.Close()
}
