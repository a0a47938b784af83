package nomad

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
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
	"github.com/drover-project/drover/internal/httpapi/nomad/vars"
	"github.com/drover-project/drover/internal/httpapi/nomad/volumes"
	"github.com/drover-project/drover/internal/id"
)

// Config is what the face needs.
type Config struct {
	State  answer.State
	Intake Intake
	Nodes  allocations.Nodes
	Events cluster.Events
	// NoEvents refuses the event stream, but for brief ones, by which the web page hears of changes.
	NoEvents bool
	Agent    Agent
	// Archives saves and restores the state.
	Archives cluster.Archives
	// ACL is access control.
	ACL acl.Config
	// Keys are the root keys.
	Keys keys.Config
	// Vars are the variables.
	Vars vars.Config
	// Introductions are those of nodes.
	Introductions nodes.Introductions
	// ParseHCL returns the JSON of the job in a job file, only with what is set (jobs.OnlySet) or canonicalized; nil = not
	// implemented. variables is the text of a variables file. When ctx ends the work does.
	ParseHCL func(ctx context.Context, hcl, variables string, canonicalize bool) (json.RawMessage, error)
	// DiffJobs is intake's job diff (Nomad's JobDiff shape); nil = versions are answered without diffs.
	DiffJobs func(old, new *drover.Job) any
	// ValidateTask asks a driver about a task's configuration; asked is false where it can't be asked. May be nil.
	ValidateTask func(t *drover.Task) (asked bool, err error)

	Clock  clock.Clock
	ID     id.Source // of executions
	Logger *slog.Logger
	Region string // default "global"
	// LastContact is how long ago this server heard of the leader: 0 if it leads, negative if never; nil = 0.
	LastContact func() time.Duration
	// DisableExec refuses exec in tasks, as Nomad's disable_remote_exec.
	DisableExec bool
	// Pprof serves /v1/agent/pprof and /debug/pprof.
	Pprof bool
	// NodeAgent reaches the agent of another node; nil = it is not asked.
	NodeAgent func(nodeID string) (http.RoundTripper, error)
	// Heartbeat is how often an event stream without events says {}; default 10 s.
	Heartbeat time.Duration
}

// Intake has every use case that the groups ask for; control/intake implements it. Errors carry drover codes and Nomad's
// texts ("job not found").
type Intake interface {
	jobs.Intake
	jobs.Versions
	allocations.Intake
	evaluations.Intake
	nodes.Intake
	cluster.Intake
	cluster.Revoking
	volumes.Intake
}

// Agent is the process that serves, and what it knows of the servers.
type Agent interface {
	agent.Process
	agent.Servers
	agent.Operator
	agent.Keyring
}

// Face serves the dialect. Each group of its routes is a package of its own.
type Face struct{ Config }

// New returns the face.
func New(cfg Config) *Face {
	if cfg.Region == "" {
		cfg.Region = drover.DefaultRegion
	}
	if cfg.Heartbeat == 0 {
		cfg.Heartbeat = 10 * time.Second
	}
	return &Face{cfg}
}

// WriteError writes Nomad's error body: the text alone.
func (f *Face) WriteError(w http.ResponseWriter, _ *http.Request, err error) {
	status := httpapi.Status(err)
	if code := drover.CodeOf(err); code == drover.Unauthorized {
		status = http.StatusForbidden // Nomad has no 401
	} else if code == drover.NotLeader {
		status = http.StatusInternalServerError // as Nomad's
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(httpapi.Message(err))) // fails only when the client is gone
}
