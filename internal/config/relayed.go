package config

import (
	"net"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/optional"
)

// RefuseRelayed says why a node may not send on what its callers ask this server, nil if it may. Its callers are strangers to
// the server, and must get no further than at the server's own API: a token lets them in there, or nothing keeps them out. from
// is where the node dialled from, host:port.
func (a *Agent) RefuseRelayed(from string) error {
	t := a.TLS
	if t == nil {
		t = &TLS{}
	}
	certified := optional.Value(t.HTTP) && optional.Value(t.VerifyHTTPSClient)
	host, _ := a.listens("http")
	switch near := isLoopback(from); {
	// A node's callers show no certificate, and the node's own may be none of ca_file's authority.
	case certified && (!optional.Value(t.RPC) || a.buysMachines()):
		return drover.Errorf(drover.Forbidden, "this server's API asks callers for certificates: ask a server itself")
	case a.Guarded() || certified || near:
		return nil
	case loopback(host):
		return drover.Errorf(drover.Forbidden, "this server's API is for its own machine only: "+
			"set api_token at servers and nodes, or ask there")
	}
	return nil
}

// buysMachines reports that machines may come that prove themselves by the fleet's authority.
func (a *Agent) buysMachines() bool { return a.Fleet != nil && len(a.Fleet.Providers) > 0 }

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}
