package jobs

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
)

// Intake changes jobs. Each method is one use case; errors carry drover codes and Nomad's texts ("job not found").
type Intake interface {
	RegisterJob(ctx context.Context, r drover.RegisterRequest) (drover.Outcome, error)
	DeregisterJob(ctx context.Context, r drover.DeregisterRequest) (drover.Outcome, error)
	// ValidateJob reports everything that would keep the job from being registered, joined.
	ValidateJob(ctx context.Context, job *drover.Job) error
	PlanJob(ctx context.Context, job *drover.Job, diff bool) (drover.Preview, error)
	EvaluateJob(ctx context.Context, namespace, id string, forceReschedule bool) (drover.Outcome, error)
	ScaleJob(ctx context.Context, r drover.ScaleRequest) (drover.Outcome, error)
	DispatchJob(ctx context.Context, r drover.DispatchRequest) (drover.Outcome, error)
	ForcePeriodic(ctx context.Context, namespace, id string) (drover.Outcome, error)
}

// Versions changes what is recorded about a job's versions.
type Versions interface {
	RevertJob(ctx context.Context, r drover.RevertRequest) (drover.Outcome, error)
	SetJobStable(ctx context.Context, namespace, id string, version uint64, stable bool) (drover.Outcome, error)
	TagJobVersion(ctx context.Context, r drover.TagRequest) (drover.Outcome, error)
	UntagJobVersion(ctx context.Context, namespace, id, name string) (drover.Outcome, error)
}

// Config is what the group needs beside the cluster.
type Config struct {
	Intake   Intake
	Versions Versions
	// ParseHCL returns the JSON of the job in a job file, only with what is set (OnlySet) or canonicalized; nil = not
	// implemented. variables is the text of a variables file. When ctx ends the work does.
	ParseHCL func(ctx context.Context, hcl, variables string, canonicalize bool) (json.RawMessage, error)
	// DiffJobs is intake's job diff (Nomad's JobDiff shape); nil = versions are answered without diffs.
	DiffJobs func(old, new *drover.Job) any
	// ValidateTask asks a driver about a task's configuration; asked is false where no driver could be asked. May be nil.
	ValidateTask func(t *drover.Task) (asked bool, err error)
}

// face answers the group's requests.
type face struct {
	*answer.Cluster
	Config
	reads, writes map[string]jobHandle // by what follows a job's id in the path
}

// newFace builds the tables of what may follow a job's id. An id can end like a suffix, such as "a/plan"; the
// tables decide, and the suffix wins.
func newFace(c *answer.Cluster, cfg Config) *face {
	f := &face{Cluster: c, Config: cfg}
	f.reads = map[string]jobHandle{
		"":             f.readJob,
		"/allocations": f.jobAllocations,
		"/evaluations": f.jobEvaluations,
		"/summary":     f.jobSummary,
		"/versions":    f.jobVersions,
		"/deployments": f.jobDeployments,
		"/deployment":  f.jobDeployment,
		"/scale":       f.scaleStatus,
		"/services":    f.jobServices,
		"/actions":     f.jobActions,
		"/submission":  f.jobSubmission,
		"/action":      refuseAction,
	}
	f.writes = map[string]jobHandle{
		"":                  f.register,
		"/plan":             f.planJob,
		"/evaluate":         f.evaluateJob,
		"/revert":           f.revertJob,
		"/stable":           f.setJobStable,
		"/dispatch":         f.dispatchJob,
		"/dispatch/payload": f.dispatchPayload,
		"/periodic/force":   f.forcePeriodic,
		"/scale":            f.scaleJob,
	}
	return f
}

// A job's id may hold slashes, escaped or not: one pattern takes all paths of a job, and route takes them apart.
const (
	jobRoot  = "/v1/job/"
	readsOf  = "GET " + jobRoot + "{rest...}"
	writesOf = "PUT,POST " + jobRoot + "{rest...}"
	endOf    = "DELETE " + jobRoot + "{rest...}"
	tagOf    = jobRoot + "{id}/versions/{name}/tag"
)

// Routes lists the group's routes.
func Routes(c *answer.Cluster, cfg Config) []httpapi.Route {
	f := newFace(c, cfg)
	return []httpapi.Route{
		{Pattern: "GET /v1/jobs", Where: httpapi.Reads, Handle: f.listJobs},
		{Pattern: "PUT,POST /v1/jobs", Where: httpapi.Leader.Of(jobRegion), Handle: f.registerJob},
		{Pattern: "PUT,POST /v1/jobs/parse", Where: httpapi.Any, Handle: f.parseJob},
		{Pattern: "GET,POST /v1/jobs/statuses", Where: httpapi.Reads, Handle: f.jobStatuses},
		{Pattern: "PUT,POST /v1/validate/job", Where: httpapi.Any.Of(jobRegion), Handle: f.validateJob},
		{Pattern: readsOf, Where: httpapi.Reads, Handle: f.jobGet},
		{Pattern: writesOf, Where: httpapi.Leader.Of(jobRegion), Handle: f.jobPut},
		{Pattern: endOf, Where: httpapi.Leader, Handle: f.jobDelete},
		{Pattern: "GET /v1/scaling/policies", Where: httpapi.Reads, Handle: f.listScalingPolicies},
		{Pattern: "GET /v1/scaling/policy/{id...}", Where: httpapi.Reads, Handle: f.readScalingPolicy},
	}
}

// actionRefused is the sentence of the answer to running an action of a job.
const actionRefused = "running job actions is not implemented yet; use exec"

// Path is one of the paths below a job.
type Path struct {
	Pattern string // methods and path
	Refused string // the sentence of the 501 that is its answer; "" = it works
}

// Paths lists the paths that a pattern of Routes stands for; none if it stands for itself.
func Paths(pattern string) []Path {
	// Only the keys of its tables are used; its handlers have no cluster and must not be called.
	f := newFace(nil, Config{})
	var paths []Path
	add := func(methods string, table map[string]jobHandle) {
		for _, suffix := range slices.Sorted(maps.Keys(table)) {
			p := Path{Pattern: methods + " " + jobRoot + "{id}" + suffix}
			if suffix == "/action" {
				p.Refused = actionRefused
			}
			paths = append(paths, p)
		}
		if methods != http.MethodGet {
			paths = append(paths, Path{Pattern: methods + " " + tagOf})
		}
	}
	switch pattern {
	case readsOf:
		add("GET", f.reads)
	case writesOf:
		add("PUT,POST", f.writes)
	case endOf:
		add("DELETE", map[string]jobHandle{"": nil})
	}
	return paths
}

// jobHandle answers for one job.
type jobHandle func(w http.ResponseWriter, r *http.Request, id string) error

// refuseAction answers GET /v1/job/ID/action, which in Nomad is a websocket that runs an action in a task.
func refuseAction(http.ResponseWriter, *http.Request, string) error {
	return drover.Errorf(drover.NotImplemented, "%s", actionRefused)
}

// jobGet answers all reads below a job, by the path behind its id.
func (f *face) jobGet(w http.ResponseWriter, r *http.Request) error {
	return route(w, r, f.reads, f.writes)
}

// jobPut answers all writes below a job, by the path behind its id.
func (f *face) jobPut(w http.ResponseWriter, r *http.Request) error {
	if id, name, ok := taggedPath(r); ok {
		return f.tagVersion(w, r, id, name)
	}
	return route(w, r, f.writes, f.reads)
}

// route picks the handler by the longest suffix of the path. A suffix that only the other methods know is 405, so
// that PUT /v1/job/x/summary does not register a job.
func route(w http.ResponseWriter, r *http.Request, table, others map[string]jobHandle) error {
	rest := strings.TrimPrefix(r.URL.EscapedPath(), jobRoot)
	suffix, known := "", true
	for _, t := range []map[string]jobHandle{table, others} {
		for s := range t {
			if len(s) > len(suffix) && len(rest) > len(s) && strings.HasSuffix(rest, s) {
				suffix = s
				_, known = table[s]
			}
		}
	}
	if !known {
		return answer.ErrMethod()
	}
	id := unescape(strings.TrimSuffix(rest, suffix))
	if id == "" {
		return drover.Errorf(drover.Invalid, "Missing job ID")
	}
	return table[suffix](w, r, id)
}

// unescape undoes the escapes of one part of the path. It is called after the path was taken apart, so that an
// escaped slash of an id stays part of the id.
func unescape(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s // cannot be: net/http refuses malformed escapes
}
