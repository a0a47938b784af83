package agent

import (
	"context"
	"net/http"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
)

// Operator changes who is a server, and how servers are kept healthy. Its methods but Autopilot answer at the leader only.
type Operator interface {
	// RemovePeer takes a server out of the log. Errors: NotFound; Invalid for the only voter; Unavailable; NotLeader.
	RemovePeer(ctx context.Context, id string) error
	// Transfer makes another server the leader. Errors: NotFound; Invalid; Unavailable; NotLeader.
	Transfer(ctx context.Context, id string) error
	// Autopilot is the configuration: what is stored, else this server's own.
	Autopilot() cluster.Autopilot
	// SetAutopilot stores the configuration; with cas only if the stored one's ModifyIndex is c's.
	SetAutopilot(ctx context.Context, c cluster.Autopilot, cas bool) (updated bool, o drover.Outcome, err error)
	AutopilotHealth() AutopilotHealth
}

// AutopilotHealth answers GET /v1/operator/autopilot/health.
type AutopilotHealth struct {
	Healthy          bool
	FailureTolerance int // how many voters may fail at once without an outage
	Servers          []ServerHealth
	Leader           string   // its id
	Voters           []string // ids
	ReadReplicas     []string `json:",omitempty"`
	// RedundancyZones is the servers of each zone.
	RedundancyZones map[string]Zone `json:",omitempty"`
}

// Zone is a redundancy zone.
type Zone struct {
	Servers, Voters  []string
	FailureTolerance int // how many servers of the zone may fail, and it still has one that votes
}

// ServerHealth is a server as autopilot judges it.
type ServerHealth struct {
	ID, Name, Address, SerfStatus, Version string
	Leader                                 bool
	LastContact                            string // duration since the server heard of the leader
	LastTerm, LastIndex                    uint64
	Healthy, Voter                         bool
	StableSince                            time.Time // since when Healthy is what it is
}

// peerOf returns the id of the server that the query names by id or address. Errors: Invalid; NotFound with Nomad's words.
func (f *face) peerOf(r *http.Request) (id string, err error) {
	v := r.URL.Query()
	id, address := v.Get("id"), v.Get("address")
	if id == "" == (address == "") {
		return "", drover.Errorf(drover.Invalid, "Must specify either ?id with the server's ID or ?address with IP:port of peer")
	}
	for _, s := range f.Servers.Raft().Servers {
		if s.ID == id && id != "" || s.Address == address && address != "" {
			return s.ID, nil
		}
	}
	if id != "" {
		return "", drover.Errorf(drover.NotFound, "id %q was not found in the Raft configuration", id)
	}
	return "", drover.Errorf(drover.NotFound, "address %q was not found in the Raft configuration", address)
}

// raftConfiguration answers GET /v1/operator/raft/configuration.
func (f *face) raftConfiguration(w http.ResponseWriter, r *http.Request) error {
	return f.Reply(w, r, f.Servers.Raft())
}

// removePeer answers DELETE /v1/operator/raft/peer.
func (f *face) removePeer(w http.ResponseWriter, r *http.Request) error {
	return f.atPeer(w, r, f.Operator.RemovePeer)
}

// transfer answers PUT /v1/operator/raft/transfer-leadership.
func (f *face) transfer(w http.ResponseWriter, r *http.Request) error {
	return f.atPeer(w, r, f.Operator.Transfer)
}

func (f *face) atPeer(w http.ResponseWriter, r *http.Request, do func(ctx context.Context, id string) error) error {
	id, err := f.peerOf(r)
	if err != nil {
		return err
	}
	if err := do(r.Context(), id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// readAutopilot answers GET /v1/operator/autopilot/configuration.
func (f *face) readAutopilot(w http.ResponseWriter, r *http.Request) error {
	return f.Reply(w, r, f.Operator.Autopilot())
}

// writeAutopilot answers PUT /v1/operator/autopilot/configuration with whether it was stored: with cas only if nobody changed it
// meanwhile. What the body leaves out is as nobody said it, and not as it was: so says Nomad's API.
func (f *face) writeAutopilot(w http.ResponseWriter, r *http.Request) error {
	var c cluster.Autopilot
	if err := httpapi.DecodeJSON(r, &c); err != nil {
		return err
	}
	if c.LastContactThreshold < 0 || c.ServerStabilizationTime < 0 {
		return drover.Errorf(drover.Invalid, "LastContactThreshold and ServerStabilizationTime must not be negative")
	}
	cas, err := answer.CheckAndSet(r, &c.ModifyIndex)
	if err != nil {
		return err
	}
	updated, o, err := f.Operator.SetAutopilot(r.Context(), c, cas)
	if err != nil {
		return err
	}
	return f.Written(w, r, o, updated)
}

// autopilotHealth answers GET /v1/operator/autopilot/health, with 429 if the servers are not healthy.
func (f *face) autopilotHealth(w http.ResponseWriter, r *http.Request) error {
	h, status := f.Operator.AutopilotHealth(), http.StatusOK
	if !h.Healthy {
		status = http.StatusTooManyRequests
	}
	f.SetIndex(w, f.State.Snapshot().Index())
	return httpapi.WriteJSON(w, r, status, h)
}
