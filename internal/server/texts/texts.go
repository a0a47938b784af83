package texts

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/evaluator"
	"github.com/drover-project/drover/internal/httpapi/nomad/jobs"
	"github.com/drover-project/drover/internal/node/rendering"
	"github.com/drover-project/drover/jobspec"
)

// jobFile is what parsing a job file is called among the evaluator's functions.
const jobFile = "job file"

// Funcs are the functions that run in child processes of the agent, by name.
func Funcs() map[string]evaluator.Func {
	return map[string]evaluator.Func{rendering.Name: rendering.Func, jobFile: parseJobFile}
}

// Limits are those of each kind of text.
type Limits struct{ Templates, JobFiles evaluator.Limits }

// DefaultLimits are far above what templates need that somebody uses: one of 4 MB takes 0.2 s and 100 MB. Those of job files are
// what the largest need that are taken, of 1 MB.
func DefaultLimits() Limits {
	return Limits{
		Templates: evaluator.Limits{Memory: 128 << 20, CPU: 5 * time.Second, Wall: 20 * time.Second, Answer: rendering.MaxResult},
		JobFiles:  evaluator.Limits{Memory: 256 << 20, CPU: 5 * time.Second, Wall: 20 * time.Second, Answer: 16 << 20},
	}
}

// Evaluators are an agent's child processes. Each kind of text has its own: who floods the one does not hold up the other.
type Evaluators struct{ templates, jobFiles *evaluator.Children }

// Open starts no child yet. Each kind of text has at most two, which end after half a minute of idling.
func Open(limits Limits, c clock.Clock, log *slog.Logger) Evaluators {
	children := func(what string, limits evaluator.Limits, waiting int) *evaluator.Children {
		return evaluator.New(evaluator.Config{
			What: what, Limits: limits, Workers: 2, Waiting: waiting, Idle: 30 * time.Second, Clock: c, Log: log,
		})
	}
	// As many templates wait as tasks start, and those are bounded.
	return Evaluators{
		templates: children("the template", limits.Templates, 10_000), jobFiles: children("the job file", limits.JobFiles, 64),
	}
}

// Templates are the children that render templates.
func (e Evaluators) Templates() *evaluator.Children { return e.templates }

// Run keeps a child ready for each kind of text that the process evaluates, until ctx ends: a node's are templates, a server's
// job files.
func (e Evaluators) Run(ctx context.Context, node, server bool) error {
	if node {
		e.templates.Warm() //nolint:contextcheck // a start is bounded
	}
	if server {
		e.jobFiles.Warm() //nolint:contextcheck // likewise
	}
	<-ctx.Done()
	e.close()
	return nil
}

func (e Evaluators) close() {
	e.templates.Close()
	e.jobFiles.Close()
}

// ParseHCL has a job file parsed. The result is the job's JSON: it is for the client, nobody here looks into it.
func (e Evaluators) ParseHCL(ctx context.Context, hcl, variables string, canonicalize bool) (json.RawMessage, error) {
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
