package e2e

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
)

var stormSize = flag.Int("storm", 500, "how many allocations TestAStormLeavesTheAPIAnswering has end at once")

const (
	stormJobs   = 5
	stormGroups = 40 // of each
	// patience is what no request may take, on whatever machine: the stall that was once seen took a minute.
	patience = 10 * time.Second
)

// witness asks as others do beside a storm, and notes how long the answers took.
type witness struct {
	a *agent

	mu      sync.Mutex
	asked   map[string]int
	longest map[string]time.Duration
	wrong   []string
}

// note is one request, with what it may take.
func (w *witness) note(kind string, limit time.Duration, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(w.a.t.Context(), limit)
	defer cancel()
	began := time.Now()
	err := ask(ctx)
	took := time.Since(began)
	if err == nil && took > limit { // the request cannot be ended
		err = fmt.Errorf("it was answered, but late")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[kind]++
	w.longest[kind] = max(w.longest[kind], took)
	if err != nil {
		w.wrong = append(w.wrong, fmt.Sprintf("%s after %s: %v", kind, took, err))
	}
	return err
}

func (w *witness) get(path string) {
	_ = w.note("GET "+path, patience, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.a.addr+path, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s", resp.Status)
		}
		return nil
	})
}

// round is one of each kind.
func (w *witness) round(name string) {
	for _, path := range []string{
		"/v1/jobs", "/v1/allocations?per_page=100", "/v1/evaluations?per_page=100", "/v1/deployments", "/v1/nodes", "/v1/metrics",
		"/v1/job/storm-0/summary", "/v1/job/storm-0/allocations", "/v1/agent/members",
	} {
		w.get(path)
	}
	_ = w.note("register", patience, func(ctx context.Context) error {
		_, _, err := w.a.nomad().Jobs().Register(rawJob(name, "batch", "/bin/true"), (&api.WriteOptions{}).WithContext(ctx))
		return err
	})
	_ = w.note("stop", patience, func(ctx context.Context) error {
		_, _, err := w.a.nomad().Jobs().Deregister(name, true, (&api.WriteOptions{}).WithContext(ctx))
		return err
	})
}

// claim takes a runner and lets it go. That there is none within its second is an answer, too.
func (w *witness) claim() (had bool) {
	_ = w.note("claim", time.Second+patience, func(ctx context.Context) error {
		r, err := w.a.native().Claim(ctx, execution.ClaimRequest{Environment: "e", Wait: time.Second})
		if err != nil {
			return ctx.Err()
		}
		had = true
		return w.a.native().Release(ctx, r.ID)
	})
	return had
}

// check says what took too long or was refused.
func (w *witness) check(least int) {
	w.a.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Empty(w.a.t, w.wrong)
	for _, kind := range slices.Sorted(maps.Keys(w.asked)) {
		w.a.t.Logf("%4d x %-32s at most %s", w.asked[kind], kind, w.longest[kind].Round(time.Millisecond))
		require.GreaterOrEqual(w.a.t, w.asked[kind], least, kind)
	}
	w.asked, w.longest = map[string]int{}, map[string]time.Duration{}
}

// stormJob ends at once wherever it is put, and its policy says to go on for ever. Another version forgets what the ones before
// did, so that somebody who registers it again and again is not slowed.
func stormJob(n, version int) *api.Job {
	j := rawJob(fmt.Sprintf("storm-%d", n), "service", "/bin/false")
	g := j.TaskGroups[0]
	g.ReschedulePolicy = &api.ReschedulePolicy{
		Unlimited: new(true), Delay: new(5 * time.Second), DelayFunction: new("constant"), Attempts: new(0),
	}
	g.EphemeralDisk = &api.EphemeralDisk{SizeMB: new(10)}
	g.Tasks[0].Resources = &api.Resources{CPU: new(1), MemoryMB: new(10)}
	g.Tasks[0].LogConfig = &api.LogConfig{MaxFiles: new(1), MaxFileSizeMB: new(1)}
	j.TaskGroups = nil
	for i := range stormGroups {
		next := *g
		next.Name = new("g" + strconv.Itoa(i))
		j.TaskGroups = append(j.TaskGroups, &next)
	}
	return j.SetMeta("version", strconv.Itoa(version))
}

// ended counts the allocations of storms that failed, as the event stream tells of them: what is collected meanwhile counts too.
type ended struct {
	over chan struct{} // closed when there are as many as wanted
	once sync.Once

	mu      sync.Mutex
	seen    map[string]bool
	changed chan struct{} // closed at each, and another one then
	ofJob   map[string]int
}

// end ends the storm.
func (e *ended) end() { e.once.Do(func() { close(e.over) }) }

// follow reads the stream until it ends.
func (e *ended) follow(t *testing.T, events <-chan *api.Events, most int) {
	for batch := range events {
		for _, event := range batch.Events {
			a, err := event.Allocation()
			if err != nil || a == nil || a.ClientStatus != api.AllocClientStatusFailed || !strings.HasPrefix(a.JobID, "storm-") {
				continue
			}
			e.mu.Lock()
			if !e.seen[a.ID] {
				e.seen[a.ID] = true
				e.ofJob[a.JobID]++
				close(e.changed)
				e.changed = make(chan struct{})
				switch n := len(e.seen); {
				case n == most:
					e.end()
				case n%100 == 0:
					t.Logf("%d have ended", n)
				}
			}
			e.mu.Unlock()
		}
	}
}

// await waits until so many more of a job (of all if it is "") have ended. It reports false when the storm is over.
func (e *ended) await(job string, more int) bool {
	count := func() (int, chan struct{}) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if job == "" {
			return len(e.seen), e.changed
		}
		return e.ofJob[job], e.changed
	}
	began, _ := count()
	for {
		n, changed := count()
		if n >= began+more {
			return true
		}
		select {
		case <-changed:
		case <-e.over:
			return false
		}
	}
}

// TestAStormLeavesTheAPIAnswering: hundreds of groups end at once under a policy without a limit, and their jobs are registered
// again and again, which takes the brake off. Beside that others read, register and claim: each request is answered, also while
// garbage is collected and an archive is made. When the jobs are gone, nothing is left that has to be looked at.
func TestAStormLeavesTheAPIAnswering(t *testing.T) {
	t.Parallel()
	a := start(t, append([]string{"-dev"}, config(t, t.TempDir(), "")...)...)
	_, full, err := a.native().PutEnvironmentAndWait(t.Context(), execution.Environment{ID: "e", Image: "host", PoolSize: 2}, time.Minute)
	require.NoError(t, err)
	require.True(t, full)
	w := &witness{a: a, asked: map[string]int{}, longest: map[string]time.Duration{}}
	e := &ended{over: make(chan struct{}), changed: make(chan struct{}), seen: map[string]bool{}, ofJob: map[string]int{}}
	events, err := a.nomad().EventStream().Stream(t.Context(), map[api.Topic][]string{api.TopicAllocation: {"*"}}, 0, nil)
	require.NoError(t, err)
	go e.follow(t, events, *stormSize) // ends with the test's context
	var beside sync.WaitGroup
	for n := range stormJobs {
		beside.Go(func() { w.storm(n, e) })
	}
	now := func() bool {
		select {
		case <-e.over:
			return false
		default:
			return true
		}
	}
	for _, each := range []struct {
		due func() bool
		ask func(int)
	}{
		{now, func(i int) { w.round(fmt.Sprintf("beside-%d", i)) }},
		{now, func(int) { w.claim() }},
		{func() bool { return e.await("", 60) }, func(int) {
			_ = w.note("gc", patience, func(context.Context) error { return a.nomad().System().GarbageCollect() })
		}},
		{func() bool { return e.await("", 50) }, func(int) { w.get("/v1/operator/snapshot") }},
	} {
		beside.Go(func() {
			for i := 0; each.due(); i++ {
				each.ask(i)
			}
		})
	}
	beside.Wait()
	w.check(3)

	for n := range stormJobs {
		_ = w.note("stop", patience, func(ctx context.Context) error {
			_, _, err := a.nomad().Jobs().Deregister(fmt.Sprintf("storm-%d", n), true, (&api.WriteOptions{}).WithContext(ctx))
			return err
		})
	}
	_, _, err = a.nomad().Jobs().Register(stormJob(0, 0), nil) // what a round looks at: one version, which is braked
	require.NoError(t, err)
	claimed := 0
	for i := range 10 {
		w.round(fmt.Sprintf("after-%d", i))
		if w.claim() {
			claimed++
		}
	}
	w.check(5)
	require.Positive(t, claimed)
	_, _, err = a.nomad().Jobs().Deregister("storm-0", true, nil)
	require.NoError(t, err)
	eventually(t, "nothing to look at", func() (bool, string) {
		evals, _, err := a.nomad().Evaluations().List(nil)
		require.NoError(t, err)
		for _, e := range evals {
			if e.Status == "pending" || e.Status == "blocked" {
				return false, e.JobID + " " + e.TriggeredBy + " " + e.Status
			}
		}
		return true, ""
	})
}

// storm registers a job's next version as soon as a part of the one before has ended.
func (w *witness) storm(n int, e *ended) {
	c, job := w.a.nomad(), fmt.Sprintf("storm-%d", n)
	for version := 0; ; version++ {
		err := w.note("storm", patience, func(ctx context.Context) error {
			_, _, err := c.Jobs().Register(stormJob(n, version), (&api.WriteOptions{}).WithContext(ctx))
			return err
		})
		if err != nil { // it is noted: nothing else waits for a storm that does not come
			e.end()
			return
		}
		if !e.await(job, stormGroups/2) {
			return
		}
	}
}
