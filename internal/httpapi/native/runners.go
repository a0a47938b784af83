package native

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/policy"
)

// runnerOperations are those on runners.
func (f *Face) runnerOperations() []operation {
	return []operation{
		{
			Route:   httpapi.Route{Pattern: "GET /v1/runners", Where: httpapi.Leader, Need: lists, Handle: f.listRunners},
			summary: "List warm and claimed runners",
			query:   runnersParams,
			out:     []execution.Runner{},
		},
		{
			Route: httpapi.Route{
				Pattern: "POST /v1/runners", Where: claims, Need: claimsRunner, Handle: f.once(f.claim), MaxBody: f.MaxFiles,
			},
			summary: "Claim a runner",
			query:   []param{namespaceParam, keyParam},
			in:      ClaimBody{}, out: execution.Runner{}, status: []int{http.StatusCreated},
		},
		{
			Route:   httpapi.Route{Pattern: "GET /v1/runner/{runner}", Where: onRunner, Need: reads, Handle: f.getRunner},
			summary: "Read a claimed runner",
			out:     execution.Runner{},
		},
		{
			Route:   httpapi.Route{Pattern: "PATCH /v1/runner/{runner}", Where: onRunner, Need: keeps, Handle: f.extend},
			summary: "Set a runner's idle timeout, from now on",
			in:      ExtendBody{}, out: execution.Runner{},
		},
		{
			Route:   httpapi.Route{Pattern: "DELETE /v1/runner/{runner}", Where: onRunner, Need: keeps, Handle: f.release},
			summary: "Release a runner",
		},
	}
}

// ClaimBody claims a runner, with files in it from the start.
type ClaimBody struct {
	execution.ClaimRequest
	Files []execution.FileChange `json:"files,omitempty"`
}

// ExtendBody changes a claimed runner.
type ExtendBody struct {
	IdleTimeout *time.Duration `json:"idleTimeout"` // ns; 0 or less = none
}

// listRunners answers GET /v1/runners. Several labels must all match, and the environment too.
func (f *Face) listRunners(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	for _, label := range q["label"] {
		if !strings.Contains(label, "=") {
			return drover.Errorf(drover.Invalid, "label: want name=value, got %q", label)
		}
	}
	environment := q.Get("environment")
	if execution.IsKey(environment) { // else who may not see it could tell whether it is there
		if err := httpapi.Allow(r.Context(), execution.NamespaceOf(environment), policy.ReadRunner); err != nil {
			return err
		}
	}
	runners, err := f.Runners.Runners(r.Context(), httpapi.AskedNamespace(r), environment)
	caller := httpapi.CallerOf(r.Context())
	runners = slices.DeleteFunc(runners, func(r execution.Runner) bool {
		return !labelled(r, q["label"]) || !caller.Namespace(execution.NamespaceOf(r.Key()), policy.ReadRunner)
	})
	return answer(w, r, http.StatusOK, runners, err)
}

// labelled reports whether the runner has all the labels, each "name=value".
func labelled(r execution.Runner, want []string) bool {
	for _, label := range want {
		name, value, _ := strings.Cut(label, "=")
		if have, ok := r.Labels[name]; !ok || have != value {
			return false
		}
	}
	return true
}

// claim takes a warm runner and puts the body's files into it. The files are checked before, so that a bad request
// costs no runner. When a file cannot be written the runner is released, even if the client has left: nobody knows
// its id.
func (f *Face) claim(w http.ResponseWriter, r *http.Request) error {
	body, err := readClaim(r)
	if err != nil {
		return err
	}
	if err := claimIn(r, &body.Namespace, &body.Environment); err != nil {
		return err
	}
	if err := execution.PrepareChanges(body.Files); err != nil {
		return err
	}
	if _, own := body.Labels[execution.OnceLabel]; own {
		return drover.Errorf(drover.Invalid, "labels: %s is set by the server, for the header %s", execution.OnceLabel, keyHeader)
	}
	body.Once = onceOf(r)
	runner, err := f.Runners.Claim(r.Context(), body.ClaimRequest) // of a repetition the files may not be there yet
	if err != nil {
		return err
	}
	httpapi.About(r.Context(), body.Environment+" "+runner.ID)
	if len(body.Files) > 0 {
		if err := f.fill(r.Context(), runner.ID, body.Files); err != nil {
			if gone := f.Runners.Release(context.WithoutCancel(r.Context()), runner.ID); gone != nil {
				f.Log.Debug("releasing a runner that could not be filled", "runner", runner.ID, "error", gone)
			}
			return err
		}
	}
	return httpapi.WriteAppended(w, r, http.StatusCreated, written(runner))
}

// fill applies the changes in order; the runner counts as used meanwhile.
func (f *Face) fill(ctx context.Context, runner string, changes []execution.FileChange) error {
	files, finish, err := f.Runners.Files(ctx, runner)
	if err != nil {
		return err
	}
	defer finish()
	return files.Apply(ctx, changes)
}

func (f *Face) getRunner(w http.ResponseWriter, r *http.Request) error {
	runner, err := f.Runners.Runner(r.Context(), r.PathValue("runner"))
	return answer(w, r, http.StatusOK, runner, err)
}

// extend answers PATCH /v1/runner/ID. The timeout is a pointer, since 0 means "none" and must differ from a missing
// field.
func (f *Face) extend(w http.ResponseWriter, r *http.Request) error {
	var body ExtendBody
	if err := httpapi.DecodeStrictJSON(r, &body); err != nil {
		return err
	}
	if body.IdleTimeout == nil {
		return drover.Errorf(drover.Invalid, "idleTimeout: missing")
	}
	runner, err := f.Runners.Extend(r.Context(), r.PathValue("runner"), *body.IdleTimeout)
	return answer(w, r, http.StatusOK, runner, err)
}

// release answers DELETE /v1/runner/ID with 204; the runner is destroyed, never used again.
func (f *Face) release(w http.ResponseWriter, r *http.Request) error {
	return done(w, f.Runners.Release(r.Context(), r.PathValue("runner")))
}
