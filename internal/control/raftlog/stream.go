package raftlog

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/drover-project/drover/internal/clock"
)

// stream is a raft.StreamLayer over a Network that, other than raft's own, closes the connections it accepted when it is
// closed.
type stream struct {
	Network
	advertise net.Addr // nil = where it listens
	clock     clock.Clock

	mu     sync.Mutex
	open   map[net.Conn]struct{} // guarded by mu
	closed bool                  // guarded by mu
}

// Addr returns where the others reach it.
func (s *stream) Addr() net.Addr {
	if s.advertise != nil {
		return s.advertise
	}
	return s.Network.Addr()
}

// Dial implements raft.StreamLayer.
func (s *stream) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := s.clock.WithTimeout(context.TODO(), timeout) // raft bounds it by the timeout only
	defer cancel()
	return s.Network.Dial(ctx, string(address))
}

// Accept implements net.Listener.
func (s *stream) Accept() (net.Conn, error) {
	c, err := s.Network.Accept()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = c.Close() // it came while the listener was being closed
		return nil, net.ErrClosed
	}
	s.open[c] = struct{}{}
	return &accepted{c, s}, nil
}

// Close implements net.Listener.
func (s *stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for c := range s.open {
		_ = c.Close() // nothing more is said on it
	}
	return s.Network.Close()
}

type accepted struct {
	net.Conn
	s *stream
}

// Close implements net.Conn.
func (a *accepted) Close() error {
	a.s.mu.Lock()
	delete(a.s.open, a.Conn)
	a.s.mu.Unlock()
	return a.Conn.Close()
}
