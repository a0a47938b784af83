package native

import (
	"net/http"

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
	}
}

func (f *Face) checkup(w http.ResponseWriter, r *http.Request) error {
	c, err := f.Checkup()
	return answer(w, r, http.StatusOK, c, err)
}
