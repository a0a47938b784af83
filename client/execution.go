package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// StartExecution starts a command that others attach to later. Errors: Invalid, NotFound, Gone; Forbidden for the webhook.
func (c *Client) StartExecution(ctx context.Context, runner string, r execution.Request) (x execution.Execution, err error) {
	_, err = c.call(ctx, http.MethodPost, []string{"runner", runner, "executions"}, nil, r, &x)
	return x, err
}

// Executions lists a runner's executions. Errors: NotFound, Gone.
func (c *Client) Executions(ctx context.Context, runner string) (list []execution.Execution, err error) {
	_, err = c.call(ctx, http.MethodGet, []string{"runner", runner, "executions"}, nil, nil, &list)
	return list, err
}

// ListExecutions lists what runs, and what ended in the last 15 minutes, in all runners of the client's namespace. Errors: Invalid.
func (c *Client) ListExecutions(ctx context.Context, q execution.ListQuery) (execution.ListPage, error) {
	query := url.Values{}
	for name, value := range map[string]string{
		"environment": q.Environment, "runner": q.Runner, "exit": q.Exit, "search": strings.Join(q.Words, " "), "sort": q.Sort,
		"next_token": q.After, "since": momentText(q.Since), "until": momentText(q.Until),
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if len(q.Statuses) > 0 {
		query["status"] = q.Statuses
	}
	if q.PerPage > 0 {
		query.Set("per_page", strconv.Itoa(q.PerPage))
	}
	res, err := c.do(ctx, request{
		method: http.MethodGet, path: []string{"executions"}, query: c.within("", q.Environment, query),
		headers: map[string]string{"Accept": "application/json"},
	})
	if err != nil {
		return execution.ListPage{}, err
	}
	defer res.Body.Close()
	page := execution.ListPage{Next: res.Header.Get("X-Nomad-NextToken")}
	if silent := res.Header.Get("Drover-Silent-Servers"); silent != "" {
		page.Silent = strings.Split(silent, ", ")
	}
	if page.Total, err = strconv.Atoi(res.Header.Get("Drover-Total")); err != nil {
		return page, drover.Errorf(drover.Internal, "decoding the answer: how many there are is %q", res.Header.Get("Drover-Total"))
	}
	if err := json.NewDecoder(res.Body).Decode(&page.Items); err != nil {
		return page, broken(ctx, "reading the answer", err)
	}
	return page, nil
}

// momentText is a time as a query has it; "" for the zero time.
func momentText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// Execution reads one as it is now. Errors: NotFound.
func (c *Client) Execution(ctx context.Context, id string) (x execution.Execution, err error) {
	_, err = c.call(ctx, http.MethodGet, []string{"execution", id}, nil, nil, &x)
	return x, err
}

// longPoll is how long one request waits for the end of an execution.
const longPoll = time.Minute

// WaitExecution returns the execution when it ended. Errors: NotFound; Canceled when ctx ends.
func (c *Client) WaitExecution(ctx context.Context, id string) (x execution.Execution, err error) {
	query := url.Values{"wait": {longPoll.String()}}
	for {
		x = execution.Execution{}
		if _, err = c.call(ctx, http.MethodGet, []string{"execution", id}, query, nil, &x); err != nil || !x.Running {
			return x, err
		}
	}
}

// SignedReceipt returns the receipt of an execution that ended, signed with one of the cluster's published keys. Errors: NotFound, Conflict
// while it runs, Unavailable while the cluster has no key that can be used.
func (c *Client) SignedReceipt(ctx context.Context, id string) (r execution.SignedReceipt, err error) {
	_, err = c.call(ctx, http.MethodGet, []string{"execution", id, "receipt"}, nil, nil, &r)
	return r, err
}

// Kill ends an execution with all its processes. Errors: NotFound, Conflict when it ended.
func (c *Client) Kill(ctx context.Context, id string) error {
	_, err := c.call(ctx, http.MethodDelete, []string{"execution", id}, nil, nil, nil)
	return err
}

// Signal sends a signal ("INT", "TERM", …). Errors: NotFound, Invalid, Conflict when it ended.
func (c *Client) Signal(ctx context.Context, id, name string) error {
	_, err := c.call(ctx, http.MethodPost, []string{"execution", id, "signal"}, nil, map[string]string{"signal": name}, nil)
	return err
}

// Resize sets the terminal's size. Errors: NotFound, Conflict when it ended.
func (c *Client) Resize(ctx context.Context, id string, size execution.WindowSize) error {
	_, err := c.call(ctx, http.MethodPost, []string{"execution", id, "resize"}, nil, size, nil)
	return err
}

// SendStdin sends what r yields as stdin, and ends stdin after it if told to. Errors: NotFound, Conflict when it ended.
func (c *Client) SendStdin(ctx context.Context, id string, r io.Reader, end bool) error {
	query := url.Values{}
	if end {
		query.Set("close", "true")
	}
	return c.send(ctx, request{method: http.MethodPost, path: []string{"execution", id, "stdin"}, query: query, body: r})
}

// Output reads one stream ("stdout" or "stderr") from the offset to its end. Close it. Errors: NotFound.
func (c *Client) Output(ctx context.Context, id, stream string, offset int64) (io.ReadCloser, error) {
	query := url.Values{"stream": {stream}, "offset": {formatInt(offset)}}
	return c.open(ctx, request{method: http.MethodGet, path: []string{"execution", id, "output"}, query: query})
}

// Timeline says when an execution's output came, as long as the output is kept. Errors: NotFound.
func (c *Client) Timeline(ctx context.Context, id string) (execution.Timeline, error) {
	var t execution.Timeline
	_, err := c.call(ctx, http.MethodGet, []string{"execution", id, "timeline"}, nil, nil, &t)
	return t, err
}

// History is how pools of environments stood since a time ago, at most six hours, and how long claims and starts took. A step of
// 0 is one that fits, and an empty environment all of them. Errors: Invalid, Unavailable.
func (c *Client) History(ctx context.Context, environment string, since, step time.Duration) (execution.History, error) {
	query := url.Values{"since": {since.String()}}
	if step > 0 {
		query.Set("step", step.String())
	}
	if environment != "" {
		query.Set("environment", environment)
	}
	var h execution.History
	_, err := c.call(ctx, http.MethodGet, []string{"metrics", "history"}, c.within("", environment, query), nil, &h)
	return h, err
}
