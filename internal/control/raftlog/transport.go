package raftlog

import (
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/drover-project/drover/internal/clock"
)

// wire is one of the library's transports. Without the second interface it would leave out the vote that a server which was cut off
// asks for before it troubles a leader.
type wire interface {
	raft.Transport
	raft.WithPreVote
}

// transport is how servers reach each other.
type transport struct {
	wire
	raft     atomic.Pointer[raft.Raft] // nil until it is there
	id       raft.ServerID
	requests chan raft.RPC // of others, and what elect asks of itself
	done     chan struct{} // closed by close
	close    func() error
}

const (
	transportTimeout = 10 * time.Second
	transportPool    = 3
	aloneAddress     = raft.ServerAddress("local")
)

func openTransport(cfg *Config, c clock.Clock, logger *logger) (*transport, error) {
	if cfg.alone() {
		_, t := raft.NewInmemTransport(aloneAddress)
		t.Connect(aloneAddress, t)
		return merged(t, cfg.ID, t.Close), nil
	}
	var advertise net.Addr
	if cfg.Advertise != "" {
		a, err := net.ResolveTCPAddr("tcp", cfg.Advertise)
		if err != nil {
			return nil, fmt.Errorf("resolving the raft advertise address: %w", err)
		}
		advertise = a
	}
	t := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: &stream{Network: cfg.Network, advertise: advertise, clock: c, open: map[net.Conn]struct{}{}},
		Logger: logger, MaxPool: transportPool, Timeout: transportTimeout, MsgpackUseNewTimeFormat: true,
		MaxRPCsInFlight: 1, // with more, version 1.7.3 can wait for ever for its own pipeline when the leader changes
	})
	return merged(named{t}, cfg.ID, func() error {
		t.CloseStreams()
		return t.Close()
	}), nil
}

// merged returns the transport with a queue of requests to which elect can add.
func merged(t wire, id string, closing func() error) *transport {
	out := &transport{wire: t, id: raft.ServerID(id), requests: make(chan raft.RPC), done: make(chan struct{})}
	ended := make(chan struct{})
	go func() { // ends when the transport is closed
		defer close(ended)
		for {
			select {
			case r := <-t.Consumer():
				if out.abstains(r) {
					continue
				}
				select {
				case out.requests <- r:
				case <-out.done:
					return
				}
			case <-out.done:
				return
			}
		}
	}()
	out.close = func() error {
		close(out.done)
		<-ended
		return closing()
	}
	return out
}

// abstains answers a request for a vote with no, if this server's own log does not list it. An empty server can stand where a
// listed one was. Others take it for that one by its address, and it does not know for whom that one has voted in the same
// term.
func (t *transport) abstains(r raft.RPC) bool {
	header := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}
	var no any
	switch asked := r.Command.(type) {
	case *raft.RequestVoteRequest:
		no = &raft.RequestVoteResponse{RPCHeader: header, Term: asked.Term}
	case *raft.RequestPreVoteRequest:
		no = &raft.RequestPreVoteResponse{RPCHeader: header, Term: asked.Term}
	default:
		return false
	}
	if t.listed() {
		return false
	}
	r.Respond(no, nil)
	return true
}

// listed reports whether the newest configuration in this server's log has this server.
func (t *transport) listed() bool {
	r := t.raft.Load()
	return r != nil && slices.ContainsFunc(r.GetConfiguration().Configuration().Servers, func(s raft.Server) bool { return s.ID == t.id })
}

// Consumer implements raft.Transport.
func (t *transport) Consumer() <-chan raft.RPC { return t.requests }

// elect has this server elect itself at once, as one whose leader hands over to it. If that fails it does so after the
// election timeout. It is for a server that is the only voter.
func (t *transport) elect() {
	request := raft.RPC{
		Command: &raft.TimeoutNowRequest{
			RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, Addr: []byte(t.LocalAddr())},
		},
		RespChan: make(chan raft.RPCResponse, 1),
	}
	select {
	case t.requests <- request:
	case <-t.done:
	}
}
