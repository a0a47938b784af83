package native

import (
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/policy"
)

// serverOperations are those on servers.
func (f *Face) serverOperations() []operation {
	return []operation{
		{
			Route: httpapi.Route{
				Pattern: "GET /v1/agent/checkup", Where: httpapi.Member, Need: httpapi.Level(policy.Agent, policy.Read),
				Handle: f.checkup,
			},
			summary: "What a server says of itself, so that the cluster can be judged (drover doctor -cluster)",
			query:   []param{{Name: "server_id", Kind: "string", About: "id or name of the server, or leader; default the agent that is asked"}},
			out:     cluster.Checkup{},
		},
		{
			Route: httpapi.Route{
				Pattern: "GET /v1/doctor", Where: httpapi.Any, Need: httpapi.Level(policy.Agent, policy.Read), Handle: f.doctor,
			},
			summary: "What is well and what is wrong with the servers of the region, in words: each is asked",
			out:     cluster.Examination{},
		},
	}
}

// doctor answers GET /v1/doctor.
func (f *Face) doctor(w http.ResponseWriter, r *http.Request) error {
	if f.Examine == nil {
		return drover.Errorf(drover.NotImplemented, "this agent is a node only: ask a server")
	}
	return httpapi.WriteJSON(w, r, http.StatusOK, f.Examine(r.Context()))
}

func (f *Face) checkup(w http.ResponseWriter, r *http.Request) error {
	c, err := f.Checkup()
	return answer(w, r, http.StatusOK, c, err)
}
