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
		{
			Route: httpapi.Route{
				Pattern: "GET /v1/doctor/nodes", Where: httpapi.Reads, Need: httpapi.Level(policy.Node, policy.Read), Handle: f.doctorOfNodes,
			},
			summary: "What the nodes of the region found of themselves, and what is wrong with their drivers, in words: what several found " +
				"alike is told together",
			query: []param{{Name: "node", Kind: "string", About: "one node, also what is well of it: its id, a prefix of it, or its name"}},
			out:   cluster.NodesExamination{},
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

// doctorOfNodes answers GET /v1/doctor/nodes. Errors: NotFound.
func (f *Face) doctorOfNodes(w http.ResponseWriter, r *http.Request) error {
	if f.ExamineNodes == nil {
		return drover.Errorf(drover.NotImplemented, "this agent is a node only: ask a server")
	}
	named := r.URL.Query().Get("node")
	found := f.ExamineNodes(named)
	if named != "" && found.Nodes == 0 {
		return drover.Errorf(drover.NotFound, "node: no node has the id or name %q", named)
	}
	return httpapi.WriteJSON(w, r, http.StatusOK, found)
}

func (f *Face) checkup(w http.ResponseWriter, r *http.Request) error {
	c, err := f.Checkup()
	return answer(w, r, http.StatusOK, c, err)
}
