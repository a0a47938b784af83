package peer

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// Protocol is what servers speak among themselves on the port.
type Protocol string

// The protocols. Their numbers rise when servers of before and after cannot understand each other.
const (
	Raft    Protocol = "drover-raft/2"    // the replicated log
	Forward Protocol = "drover-forward/2" // HTTP/1.1: requests that another server has to answer, and calls between servers
)

var protocols = []Protocol{Raft, Forward}

// older are the protocols as programs of before spoke them, which read version 1 of the log: nobody says whom it means.
var older = map[Protocol]Protocol{Raft: "drover-raft/1", Forward: "drover-forward/1"}

// newer returns the protocol that the name stands for; "" for none.
func newer(name string) (proto Protocol, named bool) {
	for _, proto := range protocols {
		if name == string(proto) || name == string(older[proto]) {
			return proto, name == string(proto)
		}
	}
	return "", false
}

// Config says how peers prove themselves.
type Config struct {
	// Self is who this server is. It is asked for each connection.
	Self func() Identity
	// TLS is the newest configuration, which is mutual; nil is clear text. RootCAs is the authority of servers' certificates.
	TLS func() *tls.Config
	// Accept is how who dials is accepted, if more than servers and their nodes may come; nil: as TLS says.
	Accept *tls.Config
	// Secrets are what servers prove to each other in clear text; without one the port speaks with no other server. It is asked
	// for the port's own, with an empty address: any of them is a proof. It is asked for those of the server that is dialled: the
	// first is proved.
	Secrets func(ctx context.Context, address string) []string

	// Revoked refuses certificates that were revoked, and closes connections of such; nil: nobody does.
	Revoked Revoked

	// Handshake bounds how long who dials may take to say what it wants, and to prove it. Default 10s.
	Handshake time.Duration

	Accepted func() // told of each connection that is accepted, whoever dialled; may be nil

	Clock clock.Clock
	Log   *slog.Logger
}

// Revoked knows which certificates were revoked. Connections that the port accepts know it already: Accept sees to them.
type Revoked interface {
	// Wrap has a connection that was dialled known until it is closed.
	Wrap(raw net.Conn) net.Conn
	// Shown notes what the other end of a known connection shows. Errors: Unauthorized if that is revoked.
	Shown(raw net.Conn, state tls.ConnectionState) error
}

// handshake is the default of Config.Handshake, and bounds that of connections that are dialled.
const handshake = 10 * time.Second

// How many connections of a protocol wait to be accepted; more are closed. Thousands of nodes dial at once when servers come back: who
// is turned away only dials again.
const (
	waiting      = 64
	waitingNodes = 8192
)

// Port is a listening port that is split.
type Port struct {
	cfg   Config
	in    net.Listener
	nodes *listener
	peers map[Protocol]*listener
	ctx   context.Context // of the connections that are not handed over yet; it ends at Close
	stop  context.CancelFunc
	wait  sync.WaitGroup
	once  sync.Once
	told  refusals
}

// Split begins to accept connections of the listener, which it closes at Close.
func Split(in net.Listener, cfg Config) *Port {
	cfg.Handshake = cmp.Or(cfg.Handshake, handshake)
	p := &Port{cfg: cfg, in: in, nodes: newListener(in.Addr(), waitingNodes), peers: map[Protocol]*listener{}}
	for _, proto := range protocols {
		p.peers[proto] = newListener(in.Addr(), waiting)
	}
	p.ctx, p.stop = context.WithCancel(context.Background()) //nolint:forbidigo // the port's own life
	p.wait.Go(p.accept)
	return p
}

// Nodes is where connections arrive that speak HTTP/2: those of nodes. With TLS they are *tls.Conn, whose handshake is done.
func (p *Port) Nodes() net.Listener { return p.nodes }

// Listener is where connections of other servers arrive that speak the protocol.
func (p *Port) Listener(proto Protocol) net.Listener { return p.peers[proto] }

// Addr is where the port listens.
func (p *Port) Addr() net.Addr { return p.in.Addr() }

// Close closes the port and all its listeners; connections that were handed over stay. It may be called twice.
func (p *Port) Close() (err error) {
	p.once.Do(func() {
		p.stop()
		err = p.in.Close()
		p.wait.Wait()
		for _, l := range p.peers {
			_ = l.Close()
		}
		_ = p.nodes.Close()
	})
	return err
}

func (p *Port) accept() {
	for pause := time.Duration(0); ; {
		c, err := p.in.Accept()
		switch {
		case err == nil:
			if pause = 0; p.cfg.Accepted != nil {
				p.cfg.Accepted()
			}
			p.wait.Go(func() { p.sort(c) })
		case errors.Is(err, net.ErrClosed) || p.ctx.Err() != nil:
			return
		default: // no descriptors, for instance
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			if !clock.Sleep(p.ctx, p.cfg.Clock, pause) {
				return
			}
		}
	}
}

// sort finds out what the connection speaks, and hands it over.
func (p *Port) sort(raw net.Conn) {
	defer context.AfterFunc(p.ctx, func() { _ = raw.Close() })() // while it is not handed over
	_ = raw.SetDeadline(p.cfg.Clock.Now().Add(p.cfg.Handshake))  // a connection that takes no deadline is broken, as the next read says
	to, c, err := p.identify(raw)
	if err != nil {
		if p.told.first(raw.RemoteAddr(), err) { // before who dialled can know
			p.cfg.Log.Warn("refusing a connection", "from", raw.RemoteAddr(), "error", err)
		}
		_ = raw.Close()
		return
	}
	_ = raw.SetDeadline(time.Time{})
	to.put(c)
}

// identify returns the listener that the connection belongs to. Errors: Unauthorized for who claims to be a server and is
// none; Conflict for one that means another server, or may not speak with this one; those of the connection.
func (p *Port) identify(c net.Conn) (*listener, net.Conn, error) {
	if p.cfg.TLS == nil {
		return p.identifyClear(c)
	}
	secure := tls.Server(c, p.accepting())
	if err := secure.HandshakeContext(context.WithoutCancel(p.ctx)); err != nil { // sort closes the connection, and the reason is told
		return nil, c, err
	}
	state := secure.ConnectionState()
	proto, named := newer(state.NegotiatedProtocol)
	if proto == "" {
		return p.nodes, secure, nil
	}
	buffered := newPeeked(secure) // it also hides from net/http that this is TLS: it would serve none with another protocol's name
	return p.peers[proto], buffered, p.admit(buffered, proto, named, p.certified(state, proto, ""))
}

// accepting returns the configuration with all that can be spoken on the port.
func (p *Port) accepting() *tls.Config {
	cfg := p.cfg.Accept
	if cfg == nil {
		cfg = p.cfg.TLS()
	}
	out := cfg.Clone()
	out.NextProtos = nil
	for _, proto := range protocols {
		out.NextProtos = append(out.NextProtos, string(proto), string(older[proto]))
	}
	out.NextProtos = append(out.NextProtos, "h2")
	if choose := cfg.GetConfigForClient; choose != nil {
		out.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			chosen, err := choose(h)
			if err != nil || chosen == nil {
				return nil, err
			}
			chosen = chosen.Clone()
			chosen.NextProtos = out.NextProtos
			return chosen, nil
		}
	}
	return out
}

func (p *Port) identifyClear(c net.Conn) (*listener, net.Conn, error) {
	buffered := newPeeked(c)
	first, err := buffered.r.Peek(1)
	if err != nil {
		return nil, c, err
	}
	if first[0] != greeting(Raft)[0] { // HTTP/2 begins with another letter
		return p.nodes, buffered.begun(), nil
	}
	line, err := buffered.r.ReadSlice('\n') // at most the buffer's size
	if err != nil {
		return nil, c, err
	}
	name := strings.TrimSuffix(string(line), "\n")
	proto, named := newer(name)
	if proto == "" {
		return nil, c, drover.Errorf(drover.Invalid, "who dialled speaks %q, which this version does not know", name)
	}
	if err := p.prove(p.ctx, buffered, Protocol(name), "", false); err != nil {
		return nil, c, err
	}
	return p.peers[proto], buffered, p.admit(buffered, proto, named, nil)
}

// Dial connects to another server, the one that is meant, to speak the protocol. Where nothing is known of who is meant, any will do.
// Errors: Unauthorized if it does not prove that it is a server, or does not take us
// for one; Unavailable, with a *Refused in it if it is not who is meant.
func (p *Port) Dial(ctx context.Context, proto Protocol, address string, means Identity) (net.Conn, error) {
	ctx, cancel := p.cfg.Clock.WithTimeout(ctx, handshake)
	defer cancel()
	c, err := p.dial(ctx, proto, address, means)
	if errors.Is(err, errSilent) && p.speaksOlder(proto) {
		c, err = p.dial(ctx, older[proto], address, means)
	}
	switch {
	case err == nil:
		return c, nil
	case errors.Is(err, errSilent) || err != nil && strings.HasSuffix(err.Error(), noSuchProtocol):
		err = fmt.Errorf("%w; its program may be an older one, which does not speak %s", err, proto)
	}
	if code := drover.CodeOf(err); code != drover.Unauthorized {
		err = drover.Errorf(drover.Unavailable, "%w", err)
	}
	return nil, fmt.Errorf("speaking with server %s: %w", address, err)
}

// noSuchProtocol ends TLS's error for a server that speaks none of the protocols that it was offered. It has no type of its own.
const noSuchProtocol = "tls: no application protocol"

// speaksOlder reports whether this server may speak the protocol of before. In a log whose entries those programs do not read none of
// them has a part.
func (p *Port) speaksOlder(proto Protocol) bool { return proto != Raft || p.cfg.Self().Writes <= 1 }

// dial is Dial of the protocol with this name.
func (p *Port) dial(ctx context.Context, name Protocol, address string, means Identity) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, drover.Errorf(drover.Unavailable, "%w", err)
	}
	if p.cfg.Revoked != nil && p.cfg.TLS != nil {
		c = p.cfg.Revoked.Wrap(c)
	}
	unwatch := context.AfterFunc(ctx, func() { _ = c.Close() })
	out, err := p.greet(ctx, c, name, address, means)
	if !unwatch() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return out, nil
}

// greet says who we are and whom we mean, once both sides have proved that they are servers.
func (p *Port) greet(ctx context.Context, c net.Conn, name Protocol, address string, means Identity) (*peeked, error) {
	proto, named := newer(string(name))
	if p.cfg.TLS == nil {
		if _, err := c.Write([]byte(greeting(name))); err != nil {
			return nil, err
		}
		out := newPeeked(c)
		if err := p.prove(ctx, out, name, address, true); err != nil || !named {
			return out, err
		}
		return out, p.introduce(out, address, means)
	}
	cfg := p.cfg.TLS().Clone()
	cfg.NextProtos = []string{string(proto)}
	if p.speaksOlder(proto) {
		cfg.NextProtos = append(cfg.NextProtos, string(older[proto]))
	}
	cfg.InsecureSkipVerify = true // the name is not the address but the role, which certified looks at
	cfg.VerifyConnection = func(state tls.ConnectionState) error {
		if err := p.certified(state, proto, means.Region); err != nil || p.cfg.Revoked == nil {
			return err
		}
		return p.cfg.Revoked.Shown(c, state)
	}
	secure := tls.Client(c, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	got, named := newer(secure.ConnectionState().NegotiatedProtocol)
	if got != proto {
		return nil, drover.Errorf(drover.Unavailable, "%s does not speak %s", address, proto)
	}
	out := newPeeked(secure)
	if !named {
		return out, nil
	}
	return out, p.introduce(out, address, means)
}

// greeting is what a server says first in clear text.
func greeting(proto Protocol) string { return string(proto) + "\n" }

// peeked is a connection of which the beginning was read.
type peeked struct {
	net.Conn
	r *bufio.Reader
}

// begun returns the connection with no more than was read of it and nobody took: there may be thousands of nodes.
func (c *peeked) begun() net.Conn {
	rest, _ := c.r.Peek(c.r.Buffered()) // it has them
	return &begun{Conn: c.Conn, rest: bytes.Clone(rest)}
}

// begun is a connection of which the beginning was read.
type begun struct {
	net.Conn
	rest []byte // of the beginning; owned by the reader
}

// NetConn is the connection itself.
func (c *begun) NetConn() net.Conn { return c.Conn }

// Read implements net.Conn.
func (c *begun) Read(b []byte) (int, error) {
	if len(c.rest) == 0 {
		c.rest = nil
		return c.Conn.Read(b)
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func newPeeked(c net.Conn) *peeked { return &peeked{Conn: c, r: bufio.NewReaderSize(c, mostSaid)} }

// Read implements net.Conn.
func (c *peeked) Read(b []byte) (int, error) {
	if c.r.Buffered() == 0 {
		return c.Conn.Read(b)
	}
	return c.r.Read(b)
}
