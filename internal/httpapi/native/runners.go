package native

import (
	"context"
	"net/http"
	"time"

	"drover"
	"drover/internal/httpapi"
)

// ClaimBody claims a runner, with files in it from the start.
type ClaimBody struct {
	drover.ClaimRequest
	Files []drover.FileChange `json:"files,omitempty"`
}

// ExtendBody changes a claimed runner.
type ExtendBody struct {
	IdleTimeout time.Duration `json:"idleTimeout"` // ns; 0 or less = none
}

func (f *Face) listRunners(w http.ResponseWriter, r *http.Request) error {
	runners, err := f.Runners.Runners(r.Context(), r.URL.Query().Get("environment"))
	return answer(w, r, http.StatusOK, runners, err)
}

func (f *Face) claim(w http.ResponseWriter, r *http.Request) error {
	var body ClaimBody
	if err := httpapi.DecodeJSON(r, &body); err != nil {
		return err
	}
	runner, err := f.Runners.Claim(r.Context(), body.ClaimRequest)
	if err != nil {
		return err
	}
	if len(body.Files) > 0 {
		if err := f.fill(r.Context(), runner.ID, body.Files); err != nil {
			if gone := f.Runners.Release(context.WithoutCancel(r.Context()), runner.ID); gone != nil {
				f.Log.Debug("releasing a runner that could not be filled", "runner", runner.ID, "error", gone)
			}
			return err
		}
	}
	return httpapi.WriteJSON(w, r, http.StatusCreated, runner)
}

func (f *Face) fill(ctx context.Context, runner string, changes []drover.FileChange) error {
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

func (f *Face) extend(w http.ResponseWriter, r *http.Request) error {
	var body ExtendBody
	if err := httpapi.DecodeJSON(r, &body); err != nil {
		return err
	}
	runner, err := f.Runners.Extend(r.Context(), r.PathValue("runner"), body.IdleTimeout)
	return answer(w, r, http.StatusOK, runner, err)
}

func (f *Face) release(w http.ResponseWriter, r *http.Request) error {
	return done(w, f.Runners.Release(r.Context(), r.PathValue("runner")))
}
