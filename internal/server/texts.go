package server

import (
	"context"
	"encoding/json"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/evaluator"
	"github.com/drover-project/drover/internal/httpapi/nomad/jobs"
	"github.com/drover-project/drover/internal/lifecycle"
	"github.com/drover-project/drover/internal/node/rendering"
	"github.com/drover-project/drover/jobspec"
)

// jobFile is what parsing a job file is called among the evaluator's functions.
const jobFile = "job file"

// Texts are the functions that evaluate what users wrote; they run in child processes of the agent.
func Texts() map[string]evaluator.Func {
	return map[string]evaluator.Func{rendering.Name: rendering.Func, jobFile: parseJobFile}
}

// templateLimits are far above what templates need that somebody uses: one of 4 MB takes 0.2 s and 100 MB.
var templateLimits = evaluator.Limits{Memory: 128 << 20, CPU: 5 * time.Second, Wall: 20 * time.Second, Answer: rendering.Max} // constant

// jobFileLimits are those of the largest job files that are taken, of 1 MB.
var jobFileLimits = evaluator.Limits{Memory: 256 << 20, CPU: 5 * time.Second, Wall: 20 * time.Second, Answer: 16 << 20} // constant

// evaluators are the agent's pools. Each kind of text has its own, so that who floods the one does not hold up the other.
type evaluators struct{ templates, jobFiles *evaluator.Pool }

// openEvaluators makes the pools without starting a child; each has at most two, which end after half a minute of
// idling.
func (a *Agent) openEvaluators(templates, jobFiles evaluator.Limits) evaluators {
	pool := func(what string, limits evaluator.Limits, waiting int) *evaluator.Pool {
		return evaluator.New(evaluator.Config{
			What: what, Limits: limits, Workers: 2, Waiting: waiting, Idle: 30 * time.Second,
			Clock: a.deps.Clock, Log: a.deps.Log.With("part", "evaluator"),
		})
	}
	// As many templates wait as tasks start, and those are bounded.
	return evaluators{templates: pool("the template", templates, 10_000), jobFiles: pool("the job file", jobFiles, 64)}
}

// part keeps a child at hand for each kind of text that this process evaluates.
func (e evaluators) part(a *Agent) lifecycle.Part {
	return lifecycle.Part{Name: "evaluators", Run: func(ctx context.Context) error {
		// Templates are evaluated on nodes and job files on servers: a process keeps only the children that it needs.
		if a.node != nil {
			e.templates.Warm() //nolint:contextcheck // a start is bounded
		}
		if a.control != nil {
			e.jobFiles.Warm() //nolint:contextcheck // likewise
		}
		<-ctx.Done()
		e.templates.Close()
		e.jobFiles.Close()
		return nil
	}}
}

// parseHCL has a job file parsed. The result is the job's JSON: it is for the client, nobody here looks into it.
func (e evaluators) parseHCL(ctx context.Context, hcl, variables string, canonicalize bool) (json.RawMessage, error) {
	how := ""
	if canonicalize {
		how = "canonicalize"
	}
	return e.jobFiles.Evaluate(ctx, jobFile, evaluator.Pack(hcl, variables, how))
}

// parseJobFile runs in the child process. It takes the file, its variables and whether to canonicalize, and returns the
// job's JSON. Without the latter only what the file sets is in it, as Nomad's parse endpoint answers.
func parseJobFile(request []byte) ([]byte, error) {
	texts, err := evaluator.Unpack(request, 3)
	if err != nil {
		return nil, drover.Errorf(drover.Internal, "reading the job file's request: %w", err)
	}
	job, err := jobspec.Parse([]byte(texts[0]), jobspec.Options{VarFile: texts[1], Now: clock.Wall{}.Now})
	if err != nil {
		return nil, err
	}
	if texts[2] != "" {
		job.Canonicalize()
		return json.Marshal(job)
	}
	return json.Marshal(jobs.OnlySet(job))
}
