package nomad

import (
	"context"
	"net/http"
	"time"

	"github.com/drover-project/drover/internal/exchange"
)

// Nodes finds the node that can be asked.
type Nodes interface {
	// Workloads returns the node's. Errors: NotFound (unknown node), Unavailable (not connected).
	Workloads(nodeID string) (exchange.Workloads, error)
}

// Agent is the process that serves: who it is and how it does.
type Agent interface {
	// Self describes the agent: configuration for people and scripts, without secrets.
	Self() AgentSelf
	// Members lists the servers of the cluster.
	Members() []Member
	// LocalNode is the id of the node in this process, "" if there is none.
	LocalNode() string
	// Leader is the leader's RPC address, "" if there is none known.
	Leader() string
	// Peers are the voters' addresses.
	Peers() []string
	// Raft is the raft configuration.
	Raft() RaftConfiguration
	// Schedulers is the number of scheduler workers, and since when they are there.
	Schedulers() (count int, started time.Time)
	// Health reports the parts that this agent has: an error is why it is not healthy.
	Health() (server, client *Health)
	// Metrics writes metrics: in Nomad's JSON, or with ?format=prometheus.
	Metrics() http.Handler
	// Logs watches the log at or above the level ("trace" … "error"), from now on.
	Logs(level string, asJSON bool) (LogTail, error)
}

// LogTail yields log lines with their newlines. A reader that is too slow gets a line that says how many it missed.
type LogTail interface {
	Next(ctx context.Context) ([]byte, error)
	Close()
}

// AgentSelf answers /v1/agent/self. Config holds at least Region, Datacenter, Name and Version{Version}.
type AgentSelf struct {
	Config map[string]any               `json:"config"`
	Member Member                       `json:"member"`
	Stats  map[string]map[string]string `json:"stats"`
}

// Member is a server.
type Member struct {
	Name        string
	Addr        string
	Port        uint16
	Tags        map[string]string // region, dc, role, build, id
	Status      string            // alive
	ProtocolMin uint8
	ProtocolMax uint8
	ProtocolCur uint8
	DelegateMin uint8
	DelegateMax uint8
	DelegateCur uint8
}

// Health is a part's.
type Health struct {
	Ok      bool   `json:"ok"`
	Message string `json:"message"`
}

// RaftConfiguration lists the voters.
type RaftConfiguration struct {
	Servers []RaftServer
	Index   uint64
}

// RaftServer is one of them.
type RaftServer struct {
	ID           string
	Node         string
	Address      string
	Leader       bool
	Voter        bool
	RaftProtocol string
}
