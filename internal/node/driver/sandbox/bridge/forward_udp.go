package bridge

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// A datagram has no connection. Who sends to a port is answered from it for as long as anything is said.
const (
	datagramIdle = time.Minute
	maxPeers     = 1024 // of one port at a time; datagrams of others are dropped
	maxDatagram  = 64 << 10
)

// datagrams passes datagrams of one port.
type datagrams struct {
	f  *Forwarder
	in *net.UDPConn
	to netip.AddrPort

	mu    sync.Mutex
	peers map[netip.AddrPort]*net.UDPConn // guarded by mu
}

// listenUDP listens for datagrams on the machine's address, as listenTCP does for connections.
func (f *Forwarder) listenUDP(host string, to netip.AddrPort) error {
	c, err := published.ListenPacket(context.Background(), "udp", host) //nolint:forbidigo // as in listenTCP
	if err != nil {
		return err
	}
	in, ok := c.(*net.UDPConn)
	if !ok {
		return errors.Join(errors.ErrUnsupported, c.Close())
	}
	d := &datagrams{f: f, in: in, to: to, peers: map[netip.AddrPort]*net.UDPConn{}}
	f.listeners = append(f.listeners, in)
	f.loops.Go(d.receive) // ends with Close
	return nil
}

// receive passes datagrams in, each by the socket of its sender, until Close.
func (d *datagrams) receive() {
	buf := make([]byte, maxDatagram)
	for {
		n, from, err := d.in.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // of an earlier datagram, which nobody took
		}
		if out := d.peer(from); out != nil {
			_, _ = out.Write(buf[:n]) // as a network does: lost is lost
		}
	}
}

// peer returns the socket through which the sandbox sees this sender, nil if there are too many.
func (d *datagrams) peer(from netip.AddrPort) *net.UDPConn {
	d.mu.Lock()
	defer d.mu.Unlock()
	if out := d.peers[from]; out != nil {
		_ = out.SetReadDeadline(d.f.clock.Now().Add(datagramIdle))
		return out
	}
	if len(d.peers) >= maxPeers {
		return nil
	}
	out, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(d.to))
	if err != nil {
		return nil
	}
	if !d.f.note(out) {
		d.f.forget(out)
		return nil
	}
	_ = out.SetReadDeadline(d.f.clock.Now().Add(datagramIdle))
	d.peers[from] = out
	d.f.loops.Go(func() { d.answer(from, out) }) // ends when nothing was said for a while, or with Close
	return out
}

// answer passes what the sandbox sends back to one sender. The socket goes when nothing was said for datagramIdle.
func (d *datagrams) answer(peer netip.AddrPort, out *net.UDPConn) {
	defer d.f.forget(out)
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.peers, peer)
	}()
	buf := make([]byte, maxDatagram)
	for {
		n, err := out.Read(buf)
		if errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if err != nil {
			continue // nobody listens there: the next one may be taken
		}
		_ = out.SetReadDeadline(d.f.clock.Now().Add(datagramIdle))
		_, _ = d.in.WriteToUDPAddrPort(buf[:n], peer)
	}
}
