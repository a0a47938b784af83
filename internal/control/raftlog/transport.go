package raftlog

import (
	"fmt"
	"net"
	"time"

	"github.com/hashicorp/raft"
)

// transport is how servers reach each other.
type transport struct {
	raft.Transport
	close func() error
}

const (
	transportTimeout = 10 * time.Second
	transportPool    = 3
	aloneAddress     = raft.ServerAddress("local")
)

func openTransport(cfg *Config, logger *logger) (*transport, error) {
	if cfg.alone() {
		_, t := raft.NewInmemTransport(aloneAddress)
		t.Connect(aloneAddress, t)
		return &transport{t, t.Close}, nil
	}
	var advertise net.Addr
	if cfg.Advertise != "" {
		a, err := net.ResolveTCPAddr("tcp", cfg.Advertise)
		if err != nil {
			return nil, fmt.Errorf("resolving the raft advertise address: %w", err)
		}
		advertise = a
	}
	listener, err := net.Listen("tcp", cfg.Bind)
	if err != nil {
		return nil, fmt.Errorf("listening for raft: %w", err)
	}
	t := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: &stream{Listener: listener, advertise: advertise, open: map[net.Conn]struct{}{}},
		Logger: logger, MaxPool: transportPool, Timeout: transportTimeout,
	})
	return &transport{t, func() error {
		t.CloseStreams()
		return t.Close()
	}}, nil
}

// elect has a lone server elect itself at once, as one whose leader hands over to it. If that fails it does so after
// aloneTimeout.
func (t *transport) elect(rc *raft.Config) {
	request := &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: rc.ProtocolVersion, ID: []byte(rc.LocalID), Addr: []byte(t.LocalAddr())}}
	_ = t.TimeoutNow(rc.LocalID, t.LocalAddr(), request, &raft.TimeoutNowResponse{})
}
