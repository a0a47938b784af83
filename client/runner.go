package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/drover-project/drover/execution"
)

// Claim takes a warm runner of an environment, which may be named by its key, with the files in it. Errors: NotFound, Exhausted, Invalid.
func (c *Client) Claim(ctx context.Context, r execution.ClaimRequest, files ...execution.FileChange) (runner execution.Runner, err error) {
	body := struct {
		execution.ClaimRequest
		Files []execution.FileChange `json:"files,omitempty"`
	}{r, files}
	_, err = c.call(ctx, http.MethodPost, []string{"runners"}, c.within(r.Namespace, r.Environment, nil), body, &runner)
	return runner, err
}

// Runners lists warm and claimed runners of the client's namespace, of one environment or (with "") of all; with labels ("name=value")
// only those that have them.
func (c *Client) Runners(ctx context.Context, environment string, labels ...string) (runners []execution.Runner, err error) {
	query := url.Values{"label": labels}
	if environment != "" {
		query.Set("environment", environment)
	}
	_, err = c.call(ctx, http.MethodGet, []string{"runners"}, c.within("", environment, query), nil, &runners)
	return runners, err
}

// Runner reads a claimed runner. Errors: NotFound, Gone.
func (c *Client) Runner(ctx context.Context, id string) (runner execution.Runner, err error) {
	_, err = c.call(ctx, http.MethodGet, []string{"runner", id}, nil, nil, &runner)
	return runner, err
}

// Extend sets a runner's idle timeout from now on; 0 or less means none. Errors: NotFound, Gone.
func (c *Client) Extend(ctx context.Context, id string, idleTimeout time.Duration) (runner execution.Runner, err error) {
	body := map[string]any{"idleTimeout": idleTimeout}
	_, err = c.call(ctx, http.MethodPatch, []string{"runner", id}, nil, body, &runner)
	return runner, err
}

// Release ends a runner. Errors: NotFound, Gone.
func (c *Client) Release(ctx context.Context, id string) error {
	_, err := c.call(ctx, http.MethodDelete, []string{"runner", id}, nil, nil, nil)
	return err
}

// Run claims a runner, runs a command with files in it, and releases it. Errors: as of Claim; what the command does is
// in the result.
func (c *Client) Run(ctx context.Context, r execution.RunRequest) (result execution.RunResult, err error) {
	_, err = c.call(ctx, http.MethodPost, []string{"run"}, c.within(r.Namespace, r.Environment, nil), r, &result)
	return result, err
}
