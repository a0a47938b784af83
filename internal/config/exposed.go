package config

import (
	"fmt"
	"net"
	"strings"

	"github.com/drover-project/drover/internal/optional"
)

// Exposed says what others than this machine's users reach without a token or in clear text. It returns a line for each such
// listener that is not on loopback, with the keys that would mend it. Such an agent starts only with insecure = true: who reaches its
// faces runs programs here, and who reads the traffic has the tokens.
func (a *Agent) Exposed() (lines []string) {
	t := a.TLS
	switch {
	case a.AutoTLS():
		t = a.OwnTLS()
	case t == nil:
		t = &TLS{}
	}
	if host, key := a.listens("http"); !loopback(host) {
		var lacks []string
		if certified := optional.Value(t.HTTP) && optional.Value(t.VerifyHTTPSClient); !a.Guarded() && !certified {
			lacks = append(lacks, "api_token")
		}
		if !optional.Value(t.HTTP) {
			lacks = append(lacks, "tls { http = true }")
		}
		if len(lacks) > 0 {
			lines = append(lines, fmt.Sprintf("%s: the API on %s lacks %s", key, host, strings.Join(lacks, " and ")))
		}
	}
	if host, key := a.listens("rpc"); optional.Value(a.Server.Enabled) && a.AwaitsNodes() && !loopback(host) && !optional.Value(t.RPC) {
		lines = append(lines, fmt.Sprintf("%s: the port of the nodes on %s lacks tls { rpc = true }", key, host))
	}
	if host, key := a.listens("serf"); a.Clustered() && !loopback(host) && !optional.Value(t.RPC) && a.Server.Encrypt == "" {
		lines = append(lines, fmt.Sprintf("%s: the servers' gossip on %s lacks server.encrypt or tls { rpc = true }", key, host))
	}
	return lines
}

// AwaitsNodes reports whether a server listens for nodes, or other servers, that dial.
func (a *Agent) AwaitsNodes() bool { return !a.Dev || a.Fleet != nil || a.Clustered() }

// listens returns the host that a listener is on, and the key that says so.
func (a *Agent) listens(kind string) (host, key string) {
	if own := a.Addresses; own != nil {
		if kind == "http" && own.HTTP != "" {
			return own.HTTP, "addresses.http"
		}
		if kind == "rpc" && own.RPC != "" {
			return own.RPC, "addresses.rpc"
		}
		if kind == "serf" && own.Serf != "" {
			return own.Serf, "addresses.serf"
		}
	}
	return a.BindAddr, "bind_addr"
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
