package native

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/socket"
	"github.com/drover-project/drover/usage"
)

// Environments is exec/runner's side of environments and their pools.
type Environments interface {
	PutEnvironment(ctx context.Context, env execution.Environment) (created bool, err error)
	ResizePool(ctx context.Context, key string, size int, was *int) (execution.Environment, error)
	Environment(ctx context.Context, id string) (execution.Environment, error)
	Environments(ctx context.Context, namespace string) ([]execution.Environment, error)
	DeleteEnvironment(ctx context.Context, id string) error
	PoolStatus(ctx context.Context, environmentID string) (execution.PoolStatus, error)
	AwaitPool(ctx context.Context, environmentID string, wait time.Duration) (status execution.PoolStatus, full bool, err error)
}

// Runners is exec/runner's side of claimed runners.
type Runners interface {
	Claim(ctx context.Context, r execution.ClaimRequest) (execution.Runner, error)
	Runner(ctx context.Context, runnerID string) (execution.Runner, error)
	Runners(ctx context.Context, namespace, environmentID string) ([]execution.Runner, error)
	Extend(ctx context.Context, runnerID string, idleTimeout time.Duration) (execution.Runner, error)
	Release(ctx context.Context, runnerID string) error
	Files(ctx context.Context, runnerID string) (files execution.Files, done func(), err error)
}

// Executions is exec/executor.
type Executions interface {
	CreateRequest(ctx context.Context, runnerID string, r execution.Request) (execution.Execution, error)
	OpenRequest(ctx context.Context, runnerID string, r execution.Request) (execution.Session, error)
	Info(ctx context.Context, executionID string) (execution.Execution, error)
	Wait(ctx context.Context, executionID string) (execution.Execution, error)
	Attach(ctx context.Context, executionID string, from execution.Offsets) (execution.Session, error)
	Control(ctx context.Context, executionID string) (execution.Session, error)
	List(ctx context.Context, runnerID string) ([]execution.Execution, error)
	RunOnce(ctx context.Context, r execution.RunRequest) (execution.RunResult, error)
	Statement(ctx context.Context, executionID string) (execution.Statement, error)
}

// Observations is exec/executor's side of those who look at executions, which never slows them.
type Observations interface {
	Observe(ctx context.Context, executionID string, from execution.Offsets) (execution.Session, error)
	Timeline(ctx context.Context, executionID string) (execution.Timeline, error)
	SelectExecutions(ctx context.Context, q execution.ListQuery, sees func(namespace string) bool) (execution.ListPage, error)
}

// History is how pools stood; *telemetry.History satisfies it. Errors: Invalid.
type History interface {
	Read(since, step time.Duration, want func(environment string) bool) (execution.History, error)
}

// Receipts signs what is known of executions; *identity.Issuer satisfies it.
type Receipts interface {
	SignReceipt(ctx context.Context, st execution.Statement) (execution.SignedReceipt, error)
}

// Config of a Face.
type Config struct {
	MaxFiles     int64         // bytes of a JSON body with files; default httpapi.MaxFiles
	MaxWait      time.Duration // of long polls; default 5 minutes
	PingEvery    time.Duration // finds peers that vanished; default socket.PingEvery
	FirstMessage time.Duration // in which a client of execute says what to execute; default 10 s
	UploadStall  time.Duration // in which nothing may come of a file: the runner counts as used meanwhile; default 1 minute
}

// Deps of a Face.
type Deps struct {
	Environments Environments
	Runners      Runners
	Executions   Executions
	Observations Observations
	Variables    Variables // for secrets of executions; nil: there are none
	Receipts     Receipts  // nil: none are signed
	// Known says whose a token is, also where everybody may do everything; nil: it is not said.
	Known httpapi.Resolver
	// Incarnation is that of the execution service; nil: there is only one. What another answered was not remembered by
	// this server alone, and may be outdated.
	Incarnation func() uint64
	Checkup     func() (cluster.Checkup, error) // of the server that is asked
	// Examine asks all servers how they are, and says what that means; nil on an agent without server.
	Examine func(ctx context.Context) cluster.Examination
	// ExamineNodes says what nodes found of themselves: all, or those that have an id, a prefix of one or a name; nil on an agent without
	// server.
	ExamineNodes func(node string) cluster.NodesExamination
	// Audit reads what the servers of the region recorded of requests; nil on an agent without server.
	Audit func(ctx context.Context, q cluster.AuditQuery) (cluster.AuditRecords, error)
	// Attention is what of the cluster wants attention, as far as the viewer sees it; nil on an agent without server.
	Attention func(ctx context.Context, v cluster.Viewer) (cluster.Attention, error)
	// History of pools; nil on an agent without server.
	History History
	// Topology is where the nodes are and how full, which nobody changes; nil on an agent without server.
	Topology func(ctx context.Context) (*cluster.Topology, error)
	// Usage samples allocations of namespaces that the caller sees; nil on an agent without server.
	Usage func(ctx context.Context, ids []string, sees func(namespace string) bool) usage.Samples
	// PlanDrain tries a drain without one; nil on an agent without server. Errors: NotFound, Exhausted.
	PlanDrain func(ctx context.Context, nodeID string, spec drover.DrainSpec) (drover.DrainPlan, error)
	// UsagePast and NodePast are what one allocation that the caller sees, and one node, used; nil on an agent without server.
	UsagePast func(ctx context.Context, id string, sees func(namespace string) bool) (usage.Past, error)
	NodePast  func(ctx context.Context, nodeID string) usage.Past
	Clock     clock.Clock
	Log       *slog.Logger
}

// Face serves the native API.
type Face struct {
	Config
	Deps
	answers *answers
}

// New returns the face.
func New(cfg Config, deps Deps) *Face {
	cfg.MaxFiles = cmp.Or(cfg.MaxFiles, httpapi.MaxFiles)
	cfg.MaxWait = cmp.Or(cfg.MaxWait, 5*time.Minute)
	cfg.PingEvery = cmp.Or(cfg.PingEvery, socket.PingEvery)
	cfg.FirstMessage = cmp.Or(cfg.FirstMessage, 10*time.Second)
	cfg.UploadStall = cmp.Or(cfg.UploadStall, time.Minute)
	return &Face{cfg, deps, newAnswers(deps.Clock, deps.Incarnation)}
}

// Problem is the body of errors.
type Problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// WriteError serves httpapi.Face.
func (f *Face) WriteError(w http.ResponseWriter, r *http.Request, err error) {
	p := Problem{drover.CodeOf(err).String(), httpapi.Message(err)}
	status := httpapi.Status(err)
	if status == http.StatusMethodNotAllowed {
		p.Code = drover.Invalid.String()
	}
	_ = httpapi.WriteJSON(w, r, status, p) // strings only
}
