package agent

import (
	"context"
	"net/http"
	"time"
)

// Process is the process that serves: who it is and how it does.
type Process interface {
	// Self describes the agent: configuration for people and scripts, without secrets.
	Self() Self
	// LocalNode is the id of the node in this process, "" if there is none.
	LocalNode() string
	// Health reports the parts that this agent has; nil for one that it has not.
	Health() (server, client *Health)
	// Reload reads the configuration again, and takes up what can be while the agent runs. Errors: Invalid.
	Reload() error
	// Metrics writes metrics: in Nomad's JSON, or with ?format=prometheus.
	Metrics() http.Handler
	// Logs watches the log at or above the level ("trace" … "error"), from now on.
	Logs(level string, asJSON bool) (LogTail, error)
}

// Servers are the cluster's servers, as this process sees them.
type Servers interface {
	// Members lists the servers.
	Members() []Member
	// Leader is the leader's RPC address, "" while there is none known.
	Leader() string
	// Peers are the voters' addresses.
	Peers() []string
	// Raft is the raft configuration.
	Raft() RaftConfiguration
	// Join makes the servers at addresses of their gossip known to this one, and returns how many answered.
	Join(ctx context.Context, addresses []string) (int, error)
	// ForceLeave makes a failed server count as left; with prune it is forgotten at once. Unknown names are no error.
	ForceLeave(name string, prune bool) error
	// Schedulers is the number of scheduler workers, the types of evaluations that they take, and since when that holds.
	Schedulers() (count int, types []string, since time.Time)
	// SetSchedulers changes both until the server stops. Errors: Invalid.
	SetSchedulers(count int, types []string) error
}

// LogTail yields log lines with their newlines. A reader that is too slow gets a line that says how many it missed.
type LogTail interface {
	Next(ctx context.Context) ([]byte, error)
	Close()
}

// Self answers /v1/agent/self. Config holds at least Region, Datacenter, Name and Version{Version}.
type Self struct {
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

// Health says how a part of the agent does.
type Health struct {
	Ok      bool   `json:"ok"`
	Message string `json:"message"`
}

// RaftConfiguration lists the servers of the log.
type RaftConfiguration struct {
	Servers []RaftServer
	Index   uint64
}

// RaftServer is a server of the log.
type RaftServer struct {
	ID           string
	Node         string
	Address      string
	Leader       bool
	Voter        bool
	RaftProtocol string
}
