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
	"github.com/drover-project/drover/internal/policy"
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
	TestAdmission(ctx context.Context, job *drover.Job) ([]drover.AdmissionVerdict, error)
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
	reads, writes map[string]jobPath // by what follows a job's id in the path
}

// newFace builds the tables of what may follow a job's id. An id can end like a suffix, such as "a/plan"; the
// tables decide, and the suffix wins.
func newFace(c *answer.Cluster, cfg Config) *face {
	f := &face{Cluster: c, Config: cfg}
	read, dispatch := httpapi.InNamespace(policy.ReadJob), httpapi.InNamespace(policy.DispatchJob)
	f.reads = map[string]jobPath{
		"":             {f.readJob, read},
		"/allocations": {f.jobAllocations, read},
		"/evaluations": {f.jobEvaluations, read},
		"/summary":     {f.jobSummary, read},
		"/versions":    {f.jobVersions, read},
		"/deployments": {f.jobDeployments, read},
		"/deployment":  {f.jobDeployment, read},
		"/scale":       {f.scaleStatus, httpapi.InNamespace(policy.ReadJobScaling)},
		"/services":    {f.jobServices, read},
		"/actions":     {f.jobActions, read},
		"/submission":  {f.jobSubmission, read},
	}
	f.writes = map[string]jobPath{
		"":                  {f.register, httpapi.OfObject(policy.RegisterJob)},
		"/plan":             {f.planJob, httpapi.OfObject(policy.PlanJob)},
		"/evaluate":         {f.evaluateJob, httpapi.InNamespace(policy.EvaluateJob)},
		"/revert":           {f.revertJob, httpapi.InNamespace(policy.RevertJob)},
		"/stable":           {f.setJobStable, httpapi.InNamespace(policy.StableJob)},
		"/dispatch":         {f.dispatchJob, dispatch},
		"/dispatch/payload": {f.dispatchPayload, dispatch},
		"/periodic/force":   {f.forcePeriodic, httpapi.InNamespace(policy.ForcePeriodicJob)},
		"/scale":            {f.scaleJob, httpapi.OfObject(policy.ScaleJob)},
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
		{Pattern: "GET /v1/jobs", Where: httpapi.Reads, Need: httpapi.InNamespace(policy.ListJobs), Handle: f.listJobs},
		{Pattern: "PUT,POST /v1/jobs", Where: httpapi.Leader.Of(jobRegion), Need: httpapi.OfObject(policy.RegisterJob), Handle: f.registerJob},
		{Pattern: "PUT,POST /v1/jobs/parse", Where: httpapi.Any, Need: httpapi.InNamespace(policy.ParseJob), Handle: f.parseJob},
		{Pattern: "GET,POST /v1/jobs/statuses", Where: httpapi.Reads, Need: httpapi.InNamespace(policy.ReadJob), Handle: f.jobStatuses},
		{
			Pattern: "PUT,POST /v1/admission/test", Where: httpapi.Any.Of(jobRegion), Need: httpapi.OfObject(policy.PlanJob),
			Handle: f.testAdmission,
		},
		{Pattern: "PUT,POST /v1/validate/job", Where: httpapi.Any.Of(jobRegion), Need: httpapi.OfObject(policy.ReadJob), Handle: f.validateJob},
		{Pattern: readsOf, Where: httpapi.Reads, Need: httpapi.Depends(f.readNeeds, casesOf("GET", f.reads)...), Handle: f.jobGet},
		{
			Pattern: writesOf, Where: httpapi.Leader.Of(jobRegion), Handle: f.jobPut,
			Need: httpapi.Depends(f.writeNeeds, append(casesOf("PUT,POST", f.writes), httpapi.Case{Path: "PUT,POST " + tagOf, Need: tags})...),
		},
		{Pattern: endOf, Where: httpapi.Leader, Need: httpapi.Depends(endNeeds, casesOfEnd...), Handle: f.jobDelete},
		{
			Pattern: "GET /v1/scaling/policies", Where: httpapi.Reads,
			Need: httpapi.InNamespace(policy.ListScalingPolicies), Handle: f.listScalingPolicies,
		},
		{
			Pattern: "GET /v1/scaling/policy/{id...}", Where: httpapi.Reads,
			Need: httpapi.OfObject(policy.ReadScalingPolicy), Handle: f.readScalingPolicy,
		},
	}
}

// Paths lists the patterns, methods and path, that a pattern of Routes stands for; none if it stands for itself.
func Paths(pattern string) []string {
	// Only the keys of its tables are used; its handlers have no cluster and must not be called.
	f := newFace(nil, Config{})
	var paths []string
	add := func(methods string, table map[string]jobPath) {
		for _, suffix := range slices.Sorted(maps.Keys(table)) {
			paths = append(paths, methods+" "+jobRoot+"{id}"+suffix)
		}
		if methods != http.MethodGet {
			paths = append(paths, methods+" "+tagOf)
		}
	}
	switch pattern {
	case readsOf:
		add("GET", f.reads)
	case writesOf:
		add("PUT,POST", f.writes)
	case endOf:
		add("DELETE", map[string]jobPath{"": {}})
	}
	return paths
}

// jobHandle answers for one job.
type jobHandle func(w http.ResponseWriter, r *http.Request, id string) error

// jobPath is what may follow a job's id.
type jobPath struct {
	handle jobHandle
	need   httpapi.Need
}

// Needs of paths that no table has.
var (
	tags   = httpapi.InNamespace(policy.TagJobVersion)
	ends   = httpapi.InNamespace(policy.DeregisterJob)
	purges = httpapi.InNamespace(policy.DeregisterJob, policy.PurgeJob)
)

// casesOfEnd are what DELETE needs.
var casesOfEnd = []httpapi.Case{
	{Path: "DELETE " + jobRoot + "{id}", Need: ends},
	{Path: "DELETE " + jobRoot + "{id}?purge=true", Need: purges},
	{Path: "DELETE " + tagOf, Need: tags},
}

// casesOf lists what the paths of a table need.
func casesOf(methods string, table map[string]jobPath) (cases []httpapi.Case) {
	for _, suffix := range slices.Sorted(maps.Keys(table)) {
		cases = append(cases, httpapi.Case{Path: methods + " " + jobRoot + "{id}" + suffix, Need: table[suffix].need})
	}
	return cases
}

// readNeeds is what a read below a job needs.
func (f *face) readNeeds(r *http.Request) httpapi.Need {
	suffix, _ := suffixOf(r, f.reads, f.writes)
	return f.reads[suffix].need
}

// writeNeeds is what a write below a job needs.
func (f *face) writeNeeds(r *http.Request) httpapi.Need {
	if _, _, ok := taggedPath(r); ok {
		return tags
	}
	suffix, _ := suffixOf(r, f.writes, f.reads)
	return f.writes[suffix].need
}

// endNeeds is what ending a job needs, or taking a version's tag off.
func endNeeds(r *http.Request) httpapi.Need {
	if _, _, ok := taggedPath(r); ok {
		return tags
	}
	if purge, err := httpapi.BoolParam(r, "purge", false); err != nil || purge {
		return purges
	}
	return ends
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
func route(w http.ResponseWriter, r *http.Request, table, others map[string]jobPath) error {
	suffix, rest := suffixOf(r, table, others)
	path, known := table[suffix]
	if !known {
		return answer.ErrMethod()
	}
	id := unescape(strings.TrimSuffix(rest, suffix))
	if id == "" {
		return drover.Errorf(drover.Invalid, "Missing job ID")
	}
	return path.handle(w, r, id)
}

// suffixOf returns the longest suffix of one of the tables that the path ends with, and the path behind jobRoot.
func suffixOf(r *http.Request, tables ...map[string]jobPath) (suffix, rest string) {
	rest = strings.TrimPrefix(r.URL.EscapedPath(), jobRoot)
	for _, t := range tables {
		for s := range t {
			if len(s) > len(suffix) && len(rest) > len(s) && strings.HasSuffix(rest, s) {
				suffix = s
			}
		}
	}
	return suffix, rest
}

// unescape undoes the escapes of one part of the path. It is called after the path was taken apart, so that an
// escaped slash of an id stays part of the id.
func unescape(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s // cannot be: net/http refuses malformed escapes
}
