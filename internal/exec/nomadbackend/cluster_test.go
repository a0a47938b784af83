package nomadbackend

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/exec/runner"
	"github.com/drover-project/drover/internal/wake"
)

// nomad is a cluster in memory: it keeps jobs, runs each runner's job at once, and streams what changes.
type nomad struct {
	server  *httptest.Server
	changed wake.Broadcast

	mu         sync.Mutex // guards what follows
	index      uint64
	jobs       map[string]*api.Job
	allocs     map[string]*api.Allocation // by job
	registered int                        // runners' jobs that were registered anew
	streams    map[chan *api.Events]bool
	refuse     int           // the status of all writes; 0 = they succeed
	cut        chan struct{} // where it is not nil, registrations are cut instead of answered, once it is closed
}

func startNomad(t *testing.T) (*nomad, string) {
	t.Helper()
	n := &nomad{jobs: map[string]*api.Job{}, allocs: map[string]*api.Allocation{}, streams: map[chan *api.Events]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/jobs", n.list)
	mux.HandleFunc("PUT /v1/jobs", n.register)
	mux.HandleFunc("GET /v1/job/{id}", n.info)
	mux.HandleFunc("DELETE /v1/job/{id}", n.deregister)
	mux.HandleFunc("GET /v1/allocations", n.allocations)
	mux.HandleFunc("GET /v1/event/stream", n.stream)
	n.server = httptest.NewServer(mux)
	t.Cleanup(func() {
		n.server.CloseClientConnections()
		n.server.Close()
	})
	return n, n.server.URL
}

func (n *nomad) answer(w http.ResponseWriter, v any) {
	w.Header().Set("X-Nomad-Index", fmt.Sprint(n.index))
	_ = json.NewEncoder(w).Encode(v)
}

func (n *nomad) list(w http.ResponseWriter, _ *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	stubs := []*api.JobListStub{{ID: "drover-but-somebody-elses"}}
	for id := range n.jobs {
		stubs = append(stubs, &api.JobListStub{ID: id})
	}
	n.answer(w, stubs)
}

func (n *nomad) info(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if job := n.jobs[r.PathValue("id")]; job != nil {
		n.answer(w, job)
		return
	}
	http.Error(w, "job not found", http.StatusNotFound)
}

func (n *nomad) allocations(w http.ResponseWriter, _ *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := []*api.Allocation{}
	for _, a := range n.allocs {
		list = append(list, a)
	}
	n.answer(w, list)
}

func (n *nomad) register(w http.ResponseWriter, r *http.Request) {
	var req api.JobRegisterRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	n.mu.Lock()
	if cut := n.cut; cut != nil && strings.HasPrefix(*req.Job.ID, runnerPrefix) {
		defer func() {
			<-cut
			panic(http.ErrAbortHandler)
		}()
	}
	defer n.mu.Unlock()
	if n.refuse != 0 {
		http.Error(w, "refused", n.refuse)
		return
	}
	id, known := *req.Job.ID, n.jobs[*req.Job.ID]
	if req.EnforceIndex && (known == nil || *known.JobModifyIndex != req.JobModifyIndex) {
		http.Error(w, "Enforcing job modify index: it is another one", http.StatusInternalServerError)
		return
	}
	n.index++
	req.Job.JobModifyIndex = new(n.index)
	n.jobs[id] = req.Job
	n.emitLocked(&api.Event{Topic: api.TopicJob, Type: "JobRegistered", Key: id}, map[string]any{"Job": req.Job})
	if strings.HasPrefix(id, runnerPrefix) && known == nil {
		n.registered++
		n.runLocked(id, drover.AllocClientRunning)
	}
	n.answer(w, api.JobRegisterResponse{JobModifyIndex: *req.Job.JobModifyIndex})
}

func (n *nomad) deregister(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	id := r.PathValue("id")
	switch {
	case n.refuse != 0:
		http.Error(w, "refused", n.refuse)
		return
	case n.jobs[id] == nil:
		http.Error(w, "job not found", http.StatusInternalServerError) // as some versions say it
		return
	}
	n.index++
	delete(n.jobs, id)
	delete(n.allocs, id)
	n.emitLocked(&api.Event{Topic: api.TopicJob, Type: "JobDeregistered", Key: id}, map[string]any{})
	n.answer(w, api.JobDeregisterResponse{})
}

// runLocked gives the runner's allocation a status.
func (n *nomad) runLocked(jobID, status string) {
	n.index++
	a := &api.Allocation{
		ID: strings.TrimPrefix(jobID, runnerPrefix), JobID: jobID, TaskGroup: environment.GroupName, ClientStatus: status,
		DesiredStatus: drover.AllocDesiredRun, ModifyIndex: n.index,
	}
	n.allocs[jobID] = a
	n.emitLocked(&api.Event{Topic: api.TopicAllocation, Type: "AllocationUpdated", Key: a.ID}, map[string]any{"Allocation": a})
}

func (n *nomad) emitLocked(e *api.Event, payload map[string]any) {
	e.Index, e.Payload = n.index, map[string]any{}
	_ = convert(payload, &e.Payload)
	for c := range n.streams {
		c <- &api.Events{Index: n.index, Events: []api.Event{*e}}
	}
	n.changed.Send()
}

func (n *nomad) stream(w http.ResponseWriter, r *http.Request) {
	events := make(chan *api.Events, 1000)
	n.mu.Lock()
	n.streams[events] = true
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.streams, events)
	}()
	flush := w.(http.Flusher)
	_, _ = w.Write([]byte("{}\n"))
	flush.Flush()
	for {
		select {
		case e := <-events:
			if json.NewEncoder(w).Encode(e) != nil {
				return
			}
			flush.Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// await waits until the cluster is so.
func (n *nomad) await(t *testing.T, what string, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		changed := n.changed.C()
		n.mu.Lock()
		yes := so()
		n.mu.Unlock()
		if yes {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatal("waited in vain:", what)
		}
	}
}

// follow runs a backend on the cluster, until the test or stop ends it.
func follow(t *testing.T, address string) (b *Backend, stop func()) {
	t.Helper()
	b = newBackend(t, address)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { // ends with ctx
		defer close(over)
		_ = b.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-over
	}
	t.Cleanup(stop)
	<-b.Synced()
	return b, stop
}

// see waits until the backend's state is so. It begins to listen before it looks.
func see(t *testing.T, b *Backend, what string, so func(s runner.Snapshot) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		snap := b.Snapshot()
		if so(snap) {
			return
		}
		sub, err := b.Subscribe(snap.Index() + 1)
		require.NoError(t, err)
		_, err = sub.Next(ctx)
		require.NoError(t, err, "waited in vain: %s", what)
	}
}

func running(s runner.Snapshot, id string) (list []*drover.Allocation) {
	for a := range s.AllocationsByJob(drover.DefaultNamespace, environment.JobOf(id).ID) {
		if a.ClientStatus == drover.AllocClientRunning && !a.ServerTerminal() {
			list = append(list, a)
		}
	}
	return list
}

func put(t *testing.T, b *Backend, e execution.Environment) {
	t.Helper()
	job, err := environment.ToJob(e, environment.Options{})
	require.NoError(t, err)
	require.NoError(t, b.RegisterJob(t.Context(), job))
}

func TestPoolsAreFilledAndRefilled(t *testing.T) {
	t.Parallel()
	n, address := startNomad(t)
	b, _ := follow(t, address)
	put(t, b, execution.Environment{ID: "e", Image: "host", PoolSize: 3})
	see(t, b, "three runners", func(s runner.Snapshot) bool { return len(running(s, "e")) == 3 })

	released := running(b.Snapshot(), "e")[0]
	require.NoError(t, b.ReleaseRunners(t.Context(), runner.Releases{AllocIDs: []string{released.ID, "unknown"}}))
	see(t, b, "another one in its place", func(s runner.Snapshot) bool { return len(running(s, "e")) == 3 })
	require.True(t, b.Snapshot().Allocation(released.ID).Terminal())

	n.mu.Lock()
	n.runLocked(runnerPrefix+running(b.Snapshot(), "e")[0].ID, drover.AllocClientFailed)
	n.mu.Unlock()
	see(t, b, "one in the place of that which failed", func(s runner.Snapshot) bool { return len(running(s, "e")) == 3 })

	require.NoError(t, b.DeregisterJob(t.Context(), "", environment.JobOf("e").ID))
	n.await(t, "nothing is left", func() bool { return len(n.jobs) == 0 })
	require.Nil(t, b.Snapshot().Job(drover.DefaultNamespace, environment.JobOf("e").ID))
	require.NoError(t, b.DeregisterJob(t.Context(), "", environment.JobOf("e").ID), "what is gone may be removed again")
}

func TestANewProcessFindsWhatIsThere(t *testing.T) {
	t.Parallel()
	n, address := startNomad(t)
	first, stop := follow(t, address)
	put(t, first, execution.Environment{ID: "e", Image: "host", PoolSize: 2})
	see(t, first, "two runners", func(s runner.Snapshot) bool { return len(running(s, "e")) == 2 })
	claimed := running(first.Snapshot(), "e")[0]
	claim := drover.Claim{RunnerID: "e-" + claimed.ID, IdleTimeout: time.Hour, Labels: map[string]string{"user": "7"}}
	results, err := first.ClaimRunners(t.Context(), []runner.AllocClaim{{AllocID: claimed.ID, Claim: claim}}, nil)
	require.NoError(t, err)
	require.Equal(t, []error{nil}, results)
	n.await(t, "another in its place", func() bool { return n.registered == 3 })
	see(t, first, "three runners", func(s runner.Snapshot) bool { return len(running(s, "e")) == 3 })
	stop()

	second, _ := follow(t, address)
	require.Len(t, running(second.Snapshot(), "e"), 3)
	require.Equal(t, &claim, second.Snapshot().Allocation(claimed.ID).Claim)
	for job := range second.Snapshot().Jobs(drover.DefaultNamespace, environment.JobPrefix) {
		require.Equal(t, environment.JobOf("e").ID, job.ID)
	}
	results, err = second.ClaimRunners(t.Context(), []runner.AllocClaim{{AllocID: claimed.ID, Claim: claim}}, nil)
	require.NoError(t, err)
	require.Equal(t, []error{nil}, results, "it has it already")
	other := claim
	other.RunnerID = "e-other"
	results, err = second.ClaimRunners(
		t.Context(), []runner.AllocClaim{{AllocID: claimed.ID, Claim: other}, {AllocID: "gone", Claim: other}}, nil,
	)
	require.NoError(t, err)
	require.Equal(t, drover.Conflict, drover.CodeOf(results[0]), "it is somebody else's")
	require.Equal(t, drover.Conflict, drover.CodeOf(results[1]))
	n.mu.Lock()
	defer n.mu.Unlock()
	require.Equal(t, 3, n.registered, "nothing was started twice")
}

func TestAClaimThatTheClusterDoesNotTake(t *testing.T) {
	t.Parallel()
	n, address := startNomad(t)
	b, _ := follow(t, address)
	put(t, b, execution.Environment{ID: "e", Image: "host", PoolSize: 1})
	see(t, b, "a runner", func(s runner.Snapshot) bool { return len(running(s, "e")) == 1 })
	a := running(b.Snapshot(), "e")[0]
	claims := []runner.AllocClaim{{AllocID: a.ID, Claim: drover.Claim{RunnerID: "e-" + a.ID}}}

	n.mu.Lock()
	n.refuse = http.StatusServiceUnavailable
	n.mu.Unlock()
	_, err := b.ClaimRunners(t.Context(), claims, nil)
	require.Equal(t, drover.Unavailable, drover.CodeOf(err), "it is to be tried again")
	require.Equal(t, drover.Unavailable, drover.CodeOf(b.ReleaseRunners(t.Context(), runner.Releases{AllocIDs: []string{a.ID}})))

	n.mu.Lock()
	n.refuse = 0
	job := *n.jobs[runnerPrefix+a.ID]
	n.index++
	job.JobModifyIndex = new(n.index) // somebody else changed it, and no event says so yet
	n.jobs[runnerPrefix+a.ID] = &job
	n.mu.Unlock()
	results, err := b.ClaimRunners(t.Context(), claims, nil)
	require.NoError(t, err)
	require.Equal(t, drover.Conflict, drover.CodeOf(results[0]))
}

// TestTheConnectionIsMadeAgain: what changed meanwhile is read when the stream is back.
func TestTheConnectionIsMadeAgain(t *testing.T) {
	t.Parallel()
	n, address := startNomad(t)
	b, _ := follow(t, address)
	put(t, b, execution.Environment{ID: "e", Image: "host", PoolSize: 1})
	see(t, b, "a runner", func(s runner.Snapshot) bool { return len(running(s, "e")) == 1 })
	before := running(b.Snapshot(), "e")[0]

	n.mu.Lock()
	streams := n.streams
	n.streams = map[chan *api.Events]bool{} // what happens now is told to nobody
	delete(n.jobs, runnerPrefix+before.ID)
	delete(n.allocs, runnerPrefix+before.ID)
	n.streams = streams
	n.mu.Unlock()
	n.server.CloseClientConnections()
	see(t, b, "its end", func(s runner.Snapshot) bool { return s.Allocation(before.ID).Terminal() })
	see(t, b, "another one", func(s runner.Snapshot) bool { return len(running(s, "e")) == 1 })
}

// TestTheAnswerOfARegistrationIsLost: the event of a runner's job came, and then the connection of its registration broke.
// The runner was forgotten, while its allocation seemed to run for ever.
func TestTheAnswerOfARegistrationIsLost(t *testing.T) {
	t.Parallel()
	n, address := startNomad(t)
	b, _ := follow(t, address)
	cut := make(chan struct{})
	n.mu.Lock()
	n.cut = cut
	n.mu.Unlock()
	put(t, b, execution.Environment{ID: "e", Image: "host", PoolSize: 1})
	see(t, b, "a runner", func(s runner.Snapshot) bool { return len(running(s, "e")) == 1 })
	before := running(b.Snapshot(), "e")[0]

	n.mu.Lock()
	n.cut = nil
	n.mu.Unlock()
	close(cut)
	put(t, b, execution.Environment{ID: "next", Image: "host", PoolSize: 1}) // is filled once the registration before it is over
	see(t, b, "a runner of the next", func(s runner.Snapshot) bool { return len(running(s, "next")) == 1 })
	require.NoError(t, b.ReleaseRunners(t.Context(), runner.Releases{AllocIDs: []string{before.ID}}))
	see(t, b, "its end", func(s runner.Snapshot) bool { return s.Allocation(before.ID).Terminal() })
	see(t, b, "another one", func(s runner.Snapshot) bool { return len(running(s, "e")) == 1 })
	n.mu.Lock()
	defer n.mu.Unlock()
	require.Equal(t, 3, n.registered, "nothing was started beside the one whose answer was lost")
}
