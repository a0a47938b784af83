package bench

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
)

// newAPI returns a client of the Nomad face without a token, as -dev needs none.
func newAPI(address string) *api.Client { return &api.Client{HTTP: &http.Client{}, Address: address} }

// benchJob is a job of one group "g" with one task that asks for next to nothing, so that the machine's size does not
// matter.
func benchJob(id, kind, driver string, count int, config map[string]any) *drover.Job {
	return &drover.Job{ID: id, Type: kind, TaskGroups: []*drover.TaskGroup{{Name: "g", Count: &count, Tasks: []*drover.Task{{
		Name: "t", Driver: driver, Config: config, Resources: &drover.Resources{CPU: 1, MemoryMB: 10},
	}}}}}
}

// sleepers is a service of so many allocations that only sleep.
func sleepers(id string, count int) *drover.Job {
	return benchJob(id, "service", "raw_exec", count, map[string]any{"command": "/bin/sleep", "args": []string{"1000"}})
}

// register registers the job over the Nomad face and does not wait for its allocations.
func (b *bench) register(ctx context.Context, j *drover.Job) error {
	_, err := b.api.Call(ctx, http.MethodPut, "/v1/jobs", nil, map[string]any{"Job": j}, nil)
	return err
}

// await blocks until the summary of the job's group satisfies done, by blocking queries.
func (b *bench) await(ctx context.Context, id string, done func(drover.TaskGroupSummary) bool) error {
	// A blocking query returns at the first change after the index, so the bench adds no polling of its own to the
	// figures.
	index := "0"
	for {
		var s drover.JobSummary
		h, err := b.api.Call(ctx, http.MethodGet, "/v1/job/"+id+"/summary", url.Values{"index": {index}, "wait": {"30s"}}, nil, &s)
		if err != nil {
			return err
		}
		if done(s.Summary["g"]) {
			return nil
		}
		index = h.Get("X-Nomad-Index")
	}
}

// jobs measures registering to running, and batch throughput.
func (b *bench) jobs(ctx context.Context) error {
	// Each job runs and is purged before the next one, so that the machine is equally empty for all of them.
	var times []time.Duration
	for i := range b.n(50) {
		id := fmt.Sprintf("one-%d", i)
		begin := b.now()
		if err := b.register(ctx, sleepers(id, 1)); err != nil {
			return err
		}
		if err := b.await(ctx, id, func(s drover.TaskGroupSummary) bool { return s.Running == 1 }); err != nil {
			return err
		}
		times = append(times, b.now().Sub(begin))
		if _, err := b.api.Call(ctx, http.MethodDelete, "/v1/job/"+id, url.Values{"purge": {"true"}}, nil, nil); err != nil {
			return err
		}
	}
	b.report("register a job to running p50 (raw_exec)", percentile(times, 0.5), "ms", "≤ 20", "Nomad 1,030")
	for _, t := range []struct {
		name, driver, goal, peer string
		count                    int
		config                   map[string]any
	}{
		{"batch tasks, raw_exec", "raw_exec", "≥ 500 (first step 200)", "Nomad 8.5", 1000, map[string]any{"command": "/bin/true"}},
		{"batch tasks, fake", "mock_driver", "≥ 5,000 (first step 2,000)", "Nomad 21", 5000, map[string]any{"run_for": "0s"}},
	} {
		n := b.n(t.count)
		id := "batch-" + t.driver
		begin := b.now()
		if err := b.register(ctx, benchJob(id, "batch", t.driver, n, t.config)); err != nil {
			return err
		}
		if err := b.await(ctx, id, func(s drover.TaskGroupSummary) bool { return s.Complete+s.Failed == n }); err != nil {
			return err
		}
		b.report(t.name, float64(n)/b.now().Sub(begin).Seconds(), "a second", t.goal, t.peer)
		entries, err := b.entries(ctx, id)
		if err != nil {
			return err
		}
		b.report(t.name+": raft entries per allocation life", entries/float64(n), "", "≤ 0.015", "Nomad 0.015")
	}
	return nil
}

// entries counts the raft entries from the job's registration to the last change of its summary. Nothing else is
// going on in this agent.
func (b *bench) entries(ctx context.Context, id string) (float64, error) {
	var s drover.JobSummary
	if _, err := b.api.Call(ctx, http.MethodGet, "/v1/job/"+id+"/summary", nil, nil, &s); err != nil {
		return 0, err
	}
	return float64(s.ModifyIndex - s.CreateIndex + 1), nil
}
