package raftlog

import (
	"fmt"
	"net"
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
		return merged(t, t.Close), nil
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
	return merged(t, func() error {
		t.CloseStreams()
		return t.Close()
	}), nil
}

// merged returns the transport with a queue of requests to which elect can add.
func merged(t wire, closing func() error) *transport {
	out, ended := &transport{wire: t, requests: make(chan raft.RPC), done: make(chan struct{})}, make(chan struct{})
	go func() { // ends when the transport is closed
		defer close(ended)
		for {
			select {
			case r := <-t.Consumer():
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
