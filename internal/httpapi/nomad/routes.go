package nomad

import (
	"slices"

	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/acl"
	"github.com/drover-project/drover/internal/httpapi/nomad/agent"
	"github.com/drover-project/drover/internal/httpapi/nomad/allocations"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/httpapi/nomad/cluster"
	"github.com/drover-project/drover/internal/httpapi/nomad/evaluations"
	"github.com/drover-project/drover/internal/httpapi/nomad/jobs"
	"github.com/drover-project/drover/internal/httpapi/nomad/keys"
	"github.com/drover-project/drover/internal/httpapi/nomad/nodes"
	"github.com/drover-project/drover/internal/httpapi/nomad/services"
	"github.com/drover-project/drover/internal/httpapi/nomad/vars"
	"github.com/drover-project/drover/internal/httpapi/nomad/volumes"
)

// Routes joins the groups' tables. PUT and POST are the same everywhere, as in Nomad.
func (f *Face) Routes() []httpapi.Route {
	c := &answer.Cluster{State: f.State, Clock: f.Clock, Region: f.Region, Leader: f.leader, LastContact: f.LastContact}
	return slices.Concat(
		jobs.Routes(c, jobs.Config{
			Intake: f.Intake, Versions: f.Intake, ParseHCL: f.ParseHCL, DiffJobs: f.DiffJobs, ValidateTask: f.ValidateTask,
		}),
		allocations.Routes(c, allocations.Config{
			Intake: f.Intake, Nodes: f.Nodes, ID: f.ID, DisableExec: f.DisableExec,
		}),
		evaluations.Routes(c, f.Intake),
		nodes.Routes(c, nodes.Config{Intake: f.Intake, Nodes: f.Nodes, LocalNode: f.localNode, Introductions: f.Introductions}),
		services.Routes(c),
		cluster.Routes(c, cluster.Config{
			Intake: f.Intake, Events: f.Events, NoEvents: f.NoEvents, Heartbeat: f.Heartbeat,
			Archives: f.Archives, Variables: f.Vars.Variables,
		}),
		acl.Routes(c, f.ACL),
		keys.Routes(c, f.Keys),
		vars.Routes(c, f.Vars),
		volumes.Routes(c, f.Intake),
		agent.Routes(c, agent.Config{
			Process: f.Agent, NodeAgent: f.NodeAgent, Servers: f.Agent, Operator: f.Agent, Keyring: f.Agent, Pprof: f.Pprof,
		}),
		refusedRoutes(),
	)
}

func (f *Face) leader() string { return f.Agent.Leader() }

func (f *Face) localNode() string { return f.Agent.LocalNode() }
