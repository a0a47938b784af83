package lookups

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/secrets"
	"github.com/drover-project/drover/service"
)

// world is a state in which "a" runs on node "n", and who reads it.
type world struct {
	*Lookups
	store *store.Store
	index uint64
	reads int // of variables
}

// Get tells the index at which the variable was written.
func (w *world) Get(_ context.Context, _ *rights.Caller, namespace, path string) (*secrets.Variable, error) {
	w.reads++
	row := w.store.Snapshot().Variable(namespace, path)
	return &secrets.Variable{VariableMetadata: row.Meta(), Items: map[string]string{"at": fmt.Sprint(row.ModifyIndex)}}, nil
}

// List lists what the caller may.
func (w *world) List(who *rights.Caller, namespace, prefix string) []*secrets.VariableMetadata {
	out := []*secrets.VariableMetadata{}
	for row := range w.store.Snapshot().Variables(namespace, prefix) {
		if m := row.Meta(); who.Variable(namespace, m.Path, policy.ListVariables) {
			out = append(out, &m)
		}
	}
	return out
}

func (w *world) change(f func(tx *store.Txn, index uint64)) {
	w.index++
	tx := w.store.Begin(w.index)
	f(tx, w.index)
	tx.Commit()
}

func (w *world) write(path string) {
	w.change(func(tx *store.Txn, index uint64) {
		tx.PutVariable(&secrets.SealedVariable{Namespace: "default", Path: path, CreateIndex: 1, ModifyIndex: index})
	})
}

func in(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{store: store.New()}
		own := func(a *drover.Allocation, task string) (*rights.Caller, error) {
			return &rights.Caller{Token: &acl.Token{}, Rights: rights.Compile().With(rights.OwnOf(a.Namespace, a.JobID, a.TaskGroup, task))}, nil
		}
		w.Lookups = New(Deps{Store: w.store, Variables: w, Clock: clock.Wall{}, Rights: own})
		web := &service.Service{Name: "web", PortLabel: "80", Provider: "nomad", Tags: []string{"b", "a"}}
		job := &drover.Job{ID: "web", Namespace: "default", TaskGroups: []*drover.TaskGroup{{
			Name: "g", Tasks: []*drover.Task{{Name: "t", Services: []*service.Service{web}}},
		}}}
		job.Canonicalize()
		w.change(func(tx *store.Txn, _ uint64) {
			tx.PutNode(&drover.Node{ID: "n", Attributes: map[string]string{"unique.network.ip-address": "10.0.0.1"}})
			tx.PutAllocation(&drover.Allocation{
				ID: "a", Namespace: "default", NodeID: "n", JobID: "web", TaskGroup: "g", Job: job, ClientStatus: "running", DesiredStatus: "run",
				TaskStates: map[string]*drover.TaskState{"t": {State: "running"}},
			})
		})
		test(t, w)
	})
}

func (w *world) look(t *testing.T, seen string, q exchange.Question) (f exchange.Found, waited time.Duration) {
	t.Helper()
	begin := time.Now()
	found, _, err := w.Look(t.Context(), "n", []exchange.Lookup{{AllocID: "a", Task: "t", Question: q, Seen: seen}}, time.Minute)
	require.NoError(t, err)
	require.LessOrEqual(t, len(found), 1)
	if len(found) == 1 {
		f = found[0]
	}
	return f, time.Since(begin)
}

func about(path string) exchange.Question {
	return exchange.Question{Kind: exchange.AskVariable, Namespace: "default", Name: path}
}

// TestVariables: a task gets its own variables, hears of a change at once, and is not asked for while nothing changes.
func TestVariables(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, w *world) {
		f, waited := w.look(t, "", about("nomad/jobs/web/g"))
		require.Equal(t, exchange.Found{Version: "none"}, f)
		require.Zero(t, waited)
		go func() {
			time.Sleep(10 * time.Second) // of the bubble
			w.write("other")             // wakes nobody who asks
			time.Sleep(10 * time.Second)
			w.write("nomad/jobs/web/g")
		}()
		f, waited = w.look(t, "none", about("nomad/jobs/web/g"))
		require.Equal(t, 20*time.Second+gather, waited)
		v := &secrets.Variable{}
		require.NoError(t, json.Unmarshal(f.Data, v))
		require.Equal(t, "3", v.Items["at"])
		reads := w.reads
		again, waited := w.look(t, f.Version, about("nomad/jobs/web/g"))
		require.Zero(t, again)
		require.Equal(t, time.Minute, waited)
		require.Equal(t, reads, w.reads, "it is not decrypted again")

		for _, path := range []string{"other", "nomad/jobs/we", "nomad/jobs/web/g/other", "nomad/jobs/web/h"} {
			f, _ := w.look(t, "", about(path))
			require.Equal(t, "Permission denied", f.Refused, path)
		}
		w.write("nomad/jobs")
		f, _ = w.look(t, "", exchange.Question{Kind: exchange.AskVariables, Namespace: "default", Name: ""})
		var list []secrets.VariableMetadata
		require.NoError(t, json.Unmarshal(f.Data, &list))
		require.Len(t, list, 2, "not those of others")
	})
}

// TestServices: registrations are told when they change, and not with every report of the allocation.
func TestServices(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, w *world) {
		q := exchange.Question{Kind: exchange.AskService, Namespace: "default", Name: "web"}
		f, _ := w.look(t, "", q)
		var list []*service.Registration
		require.NoError(t, json.Unmarshal(f.Data, &list))
		require.Len(t, list, 1)
		require.Equal(t, 80, list[0].Port)
		names, _ := w.look(t, "", exchange.Question{Kind: exchange.AskServices, Namespace: "default"})
		require.JSONEq(t, `[{"ServiceName": "web", "Tags": ["a", "b"]}]`, string(names.Data))
		report := func(status string) {
			w.change(func(tx *store.Txn, index uint64) {
				next := *tx.Allocation("a")
				next.ClientStatus, next.AllocModifyIndex = status, index
				tx.PutAllocation(&next)
			})
		}
		go func() {
			time.Sleep(time.Second) // of the bubble
			report("running")
		}()
		same, waited := w.look(t, f.Version, q)
		require.Zero(t, same)
		require.Equal(t, time.Minute, waited)
		other, _ := w.look(t, "", exchange.Question{Kind: exchange.AskService, Namespace: "prod", Name: "web"})
		require.Equal(t, "Permission denied", other.Refused)
		report("complete")
		gone, _ := w.look(t, f.Version, q)
		require.True(t, gone.Gone)
	})
}

// TestOthersGetNothing: a node asks for its own allocations only, and does not learn of others.
func TestOthersGetNothing(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, w *world) {
		for _, who := range [][2]string{{"m", "a"}, {"n", "b"}} {
			asked := []exchange.Lookup{{AllocID: who[1], Task: "t", Question: about("nomad/jobs/web")}}
			found, unknown, err := w.Look(t.Context(), who[0], asked, time.Minute)
			require.NoError(t, err)
			require.Equal(t, []exchange.Found{{Version: "gone", Gone: true}}, found)
			require.Equal(t, who[1] == "b", unknown)
			asked[0].Seen = "gone"
			begin := time.Now()
			found, _, err = w.Look(t.Context(), who[0], asked, time.Minute)
			require.NoError(t, err)
			require.Empty(t, found)
			require.Equal(t, time.Minute, time.Since(begin), "it is not answered again and again")
		}
		_, _, err := w.Look(t.Context(), "n", make([]exchange.Lookup, exchange.MaxLookups+1), time.Minute)
		require.ErrorContains(t, err, "256 at most")
		_, _, err = w.Look(t.Context(), "n", []exchange.Lookup{{AllocID: "a", Question: exchange.Question{Kind: "x"}}}, time.Minute)
		require.Equal(t, drover.NotImplemented, drover.CodeOf(err))
	})
}

// TestMixedQuestions: one call may ask of variables and of services, and hears of whichever changes first.
func TestMixedQuestions(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, w *world) {
		asked := []exchange.Lookup{
			{AllocID: "a", Task: "t", Question: about("nomad/jobs/web"), Seen: "none"},
			{AllocID: "a", Task: "t", Question: exchange.Question{Kind: exchange.AskService, Namespace: "default", Name: "web"}},
		}
		found, _, err := w.Look(t.Context(), "n", asked, time.Minute)
		require.NoError(t, err)
		require.Len(t, found, 1)
		asked[1].Seen = found[0].Version
		go func() { // ends at once
			time.Sleep(time.Second) // of the bubble
			w.write("nomad/jobs/web")
		}()
		found, _, err = w.Look(t.Context(), "n", asked, time.Minute)
		require.NoError(t, err)
		require.Len(t, found, 1)
		require.Zero(t, found[0].At)
	})
}
