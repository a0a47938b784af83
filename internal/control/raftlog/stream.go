package raftlog

import (
	"context"
	"io"
	"net"
	"strings"
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

// Dial implements raft.StreamLayer. The address is one of named's.
func (s *stream) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := s.clock.WithTimeout(context.Background(), timeout) //nolint:forbidigo // raft bounds it by the timeout only
	defer cancel()
	id, at, _ := strings.Cut(string(address), nameEnd)
	return s.Network.Dial(ctx, id, at)
}

// named has the library's transport dial, and pool connections by, the id of a server and its address: it knows both, and would
// dial whoever is at the address.
type named struct{ *raft.NetworkTransport }

// nameEnd is between the id and the address.
const nameEnd = "@"

func name(id raft.ServerID, target raft.ServerAddress) raft.ServerAddress {
	return raft.ServerAddress(id) + nameEnd + target
}

// AppendEntriesPipeline implements raft.Transport.
func (n named) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	return n.NetworkTransport.AppendEntriesPipeline(id, name(id, target))
}

// AppendEntries implements raft.Transport.
func (n named) AppendEntries(
	id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) error {
	return n.NetworkTransport.AppendEntries(id, name(id, target), args, resp)
}

// RequestVote implements raft.Transport.
func (n named) RequestVote(
	id raft.ServerID, target raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse,
) error {
	return n.NetworkTransport.RequestVote(id, name(id, target), args, resp)
}

// RequestPreVote implements raft.WithPreVote.
func (n named) RequestPreVote(
	id raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse,
) error {
	return n.NetworkTransport.RequestPreVote(id, name(id, target), args, resp)
}

// InstallSnapshot implements raft.Transport.
func (n named) InstallSnapshot(
	id raft.ServerID, target raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader,
) error {
	return n.NetworkTransport.InstallSnapshot(id, name(id, target), args, resp, data)
}

// TimeoutNow implements raft.Transport.
func (n named) TimeoutNow(
	id raft.ServerID, target raft.ServerAddress, args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse,
) error {
	return n.NetworkTransport.TimeoutNow(id, name(id, target), args, resp)
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
