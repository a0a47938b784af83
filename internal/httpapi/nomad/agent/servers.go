package agent

import (
	"net/http"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
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

// regions answers GET /v1/regions: those of the servers that gossip knows, sorted.
func (f *face) regions(w http.ResponseWriter, r *http.Request) error {
	list := []string{f.Region}
	for _, m := range f.Servers.Members() {
		if m.Status != "left" {
			list = append(list, m.Tags["region"])
		}
	}
	slices.Sort(list)
	return f.Reply(w, r, slices.Compact(list))
}

// join answers PUT /v1/agent/join. That nobody answered is a part of the answer, as in Nomad.
func (f *face) join(w http.ResponseWriter, r *http.Request) error {
	addresses := r.URL.Query()["address"]
	if len(addresses) == 0 {
		return drover.Errorf(drover.Invalid, "missing address to join")
	}
	var answer struct {
		NumJoined int    `json:"num_joined"`
		Error     string `json:"error"`
	}
	var err error
	if answer.NumJoined, err = f.Servers.Join(r.Context(), addresses); err != nil {
		answer.Error = err.Error()
	}
	return httpapi.WriteJSON(w, r, http.StatusOK, answer)
}

// forceLeave answers PUT /v1/agent/force-leave.
func (f *face) forceLeave(w http.ResponseWriter, r *http.Request) error {
	v := r.URL.Query()
	if v.Get("node") == "" {
		return drover.Errorf(drover.Invalid, "missing node to force leave")
	}
	prune := v.Has("prune") && v.Get("prune") != "0" && v.Get("prune") != "false"
	if err := f.Servers.ForceLeave(v.Get("node"), prune); err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}
