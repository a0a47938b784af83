package poseidon

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/socket"
	"github.com/drover-project/drover/internal/policy"
)

// Environments is exec/runner's side of environments and their pools.
type Environments interface {
	PutEnvironment(ctx context.Context, env execution.Environment) (created bool, err error)
	Environment(ctx context.Context, id string) (execution.Environment, error)
	Environments(ctx context.Context, namespace string) ([]execution.Environment, error)
	AwaitRollout(ctx context.Context, environmentID string, wait time.Duration) error
	DeleteEnvironment(ctx context.Context, id string) error
	Pools(ctx context.Context) ([]execution.PoolStatus, error)
}

// Runners is exec/runner's side of claimed runners.
type Runners interface {
	Claim(ctx context.Context, r execution.ClaimRequest) (execution.Runner, error)
	Runner(ctx context.Context, runnerID string) (execution.Runner, error)
	Release(ctx context.Context, runnerID string) error
	ReleaseAfterOOM(ctx context.Context, runnerID string) error
	Files(ctx context.Context, runnerID string) (files execution.Files, done func(), err error)
}

// Executions is exec/executor.
type Executions interface {
	Shell(ctx context.Context, runnerID, command string) (argv []string, err error)
	Prepare(ctx context.Context, runnerID string, spec execution.Spec) (executionID string, err error)
	Prepared(runnerID, executionID string) bool
	Take(ctx context.Context, runnerID, executionID string) (execution.Spec, error)
	Open(ctx context.Context, runnerID string, spec execution.Spec) (execution.Session, error)
}

// Templates are environments that stand in template jobs, registered by other means than ours.
type Templates interface {
	// Templates reads them out of the jobs.
	Templates(ctx context.Context) []execution.Environment
	// RemoveTemplate deregisters a template job, if there is one.
	RemoveTemplate(ctx context.Context, environmentID string) error
}

// Config of a Face.
type Config struct {
	// Driver of the environments made here; "" = the service's default.
	Driver string
	// Version is what /version answers; "" = 404, as a Poseidon without one.
	Version string
	// PublicURL, if set, is where clients reach us ("https://host[:port]"); else the request says.
	PublicURL string
	// MergeStderr sends stderr with stdout, through the terminal (Poseidon's interactivestderr=false).
	MergeStderr bool
	// PrewarmingThreshold in [0,1): /health alerts when an environment has a smaller share of its pool warm.
	PrewarmingThreshold float64
	// ClaimWait is how long a claim with an empty pool waits; default 0: Poseidon answers its overload at once.
	ClaimWait time.Duration
	// MaxFiles bounds the body of a PATCH of files; default httpapi.MaxFiles.
	MaxFiles int64
	// PingEvery finds peers that vanished; default socket.PingEvery.
	PingEvery time.Duration
}

// Deps of a Face.
type Deps struct {
	Environments Environments
	Runners      Runners
	Executions   Executions
	Templates    Templates
	Clock        clock.Clock
	Log          *slog.Logger
}

// Face serves /api/v1.
type Face struct {
	Config
	Deps
}

// New returns the face.
func New(cfg Config, deps Deps) *Face {
	cfg.MaxFiles = cmp.Or(cfg.MaxFiles, httpapi.MaxFiles)
	cfg.PingEvery = cmp.Or(cfg.PingEvery, socket.PingEvery)
	return &Face{cfg, deps}
}

// Routes serves httpapi.Face.
func (f *Face) Routes() []httpapi.Route {
	const base, runner, env = "/api/v1", "/api/v1/runners/{runner}", "/api/v1/execution-environments"
	onRunner := httpapi.Runner(httpapi.PathKey("runner"))
	reads, readsFiles := httpapi.InDefault(policy.ReadRunner), httpapi.OfRunner(policy.ReadFiles)
	writes, writesFiles := httpapi.InDefault(policy.WriteEnvironment), httpapi.OfRunner(policy.WriteFiles)
	agent := httpapi.Level(policy.Agent, policy.Read)
	executes, claims, destroys := httpapi.OfRunner(policy.Execute), httpapi.InDefault(policy.ClaimRunner), httpapi.OfRunner(policy.ClaimRunner)
	return []httpapi.Route{
		{Pattern: "GET " + base + "/health", Where: httpapi.Leader, Need: agent.OpenAs(acl.OpenHealth), Handle: f.health},
		{Pattern: "GET " + base + "/version", Where: httpapi.Here, Need: agent.OpenAs(acl.OpenVersion), Handle: f.version},
		{Pattern: "GET " + base + "/statistics/execution-environments", Where: httpapi.Leader, Need: reads, Handle: f.statistics},

		{Pattern: "GET " + env, Where: httpapi.Reads, Need: fetches(env), Handle: f.listEnvironments},
		{Pattern: "GET " + env + "/{environment}", Where: httpapi.Reads, Need: fetches(env + "/{environment}"), Handle: f.getEnvironment},
		{Pattern: "PUT " + env + "/{environment}", Where: httpapi.Leader, Need: writes.Knowing(), Handle: f.putEnvironment},
		{Pattern: "DELETE " + env + "/{environment}", Where: httpapi.Leader, Need: writes, Handle: f.deleteEnvironment},

		{Pattern: "POST " + base + "/runners", Where: httpapi.Claim(httpapi.BodyKey("executionEnvironmentId")), Need: claims, Handle: f.provide},
		{Pattern: "DELETE " + runner, Where: onRunner, Need: destroys, Handle: f.destroy},
		{Pattern: "GET " + runner + "/files", Where: onRunner, Need: readsFiles, Handle: f.listFiles},
		{
			Pattern: "PATCH " + runner + "/files", Where: onRunner,
			Need: writesFiles, Handle: f.updateFiles, MaxBody: f.MaxFiles,
		},
		// Not compressed: its length is told.
		{Pattern: "GET " + runner + "/files/raw", Where: onRunner, Need: readsFiles, Handle: f.rawFile, Stream: true},
		{Pattern: "POST " + runner + "/execute", Where: onRunner, Need: executes, Handle: f.execute},
		{Pattern: "GET " + runner + "/websocket", Where: onRunner, Need: executes, Handle: f.connect, Stream: true},
		{Pattern: base + "/", Where: httpapi.Here, Need: httpapi.Anybody, Handle: unknown},
	}
}

// fetches is what reading environments at the path needs: with fetch they may be made of template jobs.
func fetches(path string) httpapi.Need {
	reads, makes := httpapi.InDefault(policy.ReadRunner), httpapi.InDefault(policy.ReadRunner, policy.WriteEnvironment).Knowing()
	return httpapi.Depends(func(r *http.Request) httpapi.Need {
		if asked, err := strconv.ParseBool(r.URL.Query().Get("fetch")); err == nil && asked {
			return makes
		}
		return reads
	}, httpapi.Case{Path: "GET " + path, Need: reads}, httpapi.Case{Path: "GET " + path + "?fetch=true", Need: makes})
}

// unknown answers every other path with an empty 404. Without this route the server's own text would be the body.
func unknown(http.ResponseWriter, *http.Request) error { return &reply{status: http.StatusNotFound} }

// Token serves httpapi.TokenFace.
func (f *Face) Token(r *http.Request) string {
	if t := r.Header.Get("Poseidon-Token"); t != "" {
		return t
	}
	return httpapi.Token(r)
}
