package agent

import (
	"net/http"

	"github.com/drover-project/drover"
)

// leader answers GET /v1/status/leader; without a leader it is an error, as in Nomad.
func (f *face) leader(w http.ResponseWriter, r *http.Request) error {
	leader := f.Servers.Leader()
	if leader == "" {
		return drover.Errorf(drover.Internal, "No cluster leader")
	}
	return f.Reply(w, r, leader)
}

// peers answers GET /v1/status/peers.
func (f *face) peers(w http.ResponseWriter, r *http.Request) error {
	return f.Reply(w, r, append([]string{}, f.Servers.Peers()...))
}

// regions answers GET /v1/regions: there is one.
func (f *face) regions(w http.ResponseWriter, r *http.Request) error {
	return f.Reply(w, r, []string{f.Region})
}

// raftConfiguration answers GET /v1/operator/raft/configuration.
func (f *face) raftConfiguration(w http.ResponseWriter, r *http.Request) error {
	return f.Reply(w, r, f.Servers.Raft())
}

// removePeer refuses: one server is one voter, and it can't be taken away.
func (f *face) removePeer(_ http.ResponseWriter, r *http.Request) error {
	v := r.URL.Query()
	id, address := v.Get("id"), v.Get("address")
	if id == "" == (address == "") {
		return drover.Errorf(drover.Invalid, "Must specify either ?id with the server's ID or ?address with IP:port of peer to remove")
	}
	for _, s := range f.Servers.Raft().Servers {
		if s.ID == id && id != "" || s.Address == address && address != "" {
			return drover.Errorf(drover.Invalid, "%s is the only voter: it can't be removed", s.ID)
		}
	}
	if id != "" {
		return drover.Errorf(drover.NotFound, "id %q was not found in the Raft configuration", id)
	}
	return drover.Errorf(drover.NotFound, "address %q was not found in the Raft configuration", address)
}
