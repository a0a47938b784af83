package runner_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/exectest"
	"github.com/drover-project/drover/internal/exec/runner"
)

// tenants is a service, and a stupid model of which namespace has which runners of the environment "e" that each may have.
type tenants struct {
	t     *rapid.T
	s     *runner.Service
	c     *exectest.Control
	there map[string]bool              // namespaces that have the environment
	held  map[string]map[string]string // runners' allocations by runner, by namespace
	seen  map[string]bool              // allocations that were handed out
}

func (w *tenants) claim(ctx context.Context, namespace string) {
	r, err := w.s.Claim(ctx, execution.ClaimRequest{Environment: "e", Namespace: namespace, Wait: -1})
	switch {
	case !w.there[namespace]:
		require.Equal(w.t, drover.NotFound, drover.CodeOf(err))
	case err != nil:
		require.Equal(w.t, drover.Exhausted, drover.CodeOf(err))
	default:
		require.Equal(w.t, execution.Key(namespace, "e")+"-"+r.AllocID, r.ID)
		require.Equal(w.t, namespace, r.Namespace)
		require.Equal(w.t, execution.NamespaceOf(r.ID), w.c.Snapshot().Allocation(r.AllocID).Namespace)
		require.False(w.t, w.seen[r.AllocID], "handed out twice")
		w.seen[r.AllocID], w.held[namespace][r.ID] = true, r.AllocID
	}
}

// put makes the environment in the namespace, or deletes it there with its runners.
func (w *tenants) put(ctx context.Context, namespace string) {
	if w.there[namespace] {
		require.NoError(w.t, w.s.DeleteEnvironment(ctx, execution.Key(namespace, "e")))
		for id := range w.held[namespace] {
			_, err := w.s.Runner(ctx, id)
			require.Contains(w.t, []drover.Code{drover.Gone, drover.NotFound}, drover.CodeOf(err))
		}
		clear(w.held[namespace])
	} else {
		_, err := w.s.PutEnvironment(ctx, execution.Environment{ID: "e", Namespace: namespace, Image: "host", PoolSize: 3})
		require.NoError(w.t, err)
	}
	w.there[namespace] = !w.there[namespace]
}

// release gives up a runner of the namespace, if it has one.
func (w *tenants) release(ctx context.Context, namespace string) {
	for _, id := range slices.Sorted(maps.Keys(w.held[namespace])) {
		require.NoError(w.t, w.s.Release(ctx, id))
		delete(w.held[namespace], id)
		return
	}
}

// check compares what each namespace has with the model, and asks for each runner under the names of all namespaces.
func (w *tenants) check(ctx context.Context) {
	for namespace, held := range w.held {
		list, err := w.s.Runners(ctx, namespace, "")
		require.NoError(w.t, err)
		claimed := map[string]string{}
		for _, r := range list {
			require.Equal(w.t, namespace, r.Namespace)
			if !r.ClaimedAt.IsZero() {
				claimed[r.ID] = r.AllocID
			}
		}
		require.Equal(w.t, held, claimed)
		for other := range w.held {
			for _, allocID := range held {
				_, err := w.s.Runner(ctx, execution.Key(other, "e")+"-"+allocID)
				if other == namespace {
					require.NoError(w.t, err)
				} else {
					require.Equal(w.t, drover.NotFound, drover.CodeOf(err), "under the name of another tenant")
				}
			}
		}
	}
	all, err := w.s.Runners(ctx, "*", "e")
	require.NoError(w.t, err)
	got := 0
	for _, r := range all {
		if !r.ClaimedAt.IsZero() {
			got++
		}
	}
	require.Equal(w.t, len(w.held[""])+len(w.held["a"])+len(w.held["b"]), got)
}

// Three namespaces have environments of one id. Whatever they do, through crashes and while control is away, each gets runners of its own
// environment, keeps them until it gives them up, and can reach no other's.
func TestTenantsGetTheirOwnRunners(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		require.NoError(t, err)
		w := &tenants{
			t: t, c: exectest.NewControl(), there: map[string]bool{}, seen: map[string]bool{},
			held: map[string]map[string]string{"": {}, "a": {}, "b": {}},
		}
		for range rapid.IntRange(1, 4).Draw(t, "lives") {
			w.s, err = runner.New(journalIn(dir), w.c.Deps())
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() { defer close(done); _ = w.s.Run(ctx) }() // ends with ctx
			w.check(ctx)
			for range rapid.IntRange(0, 12).Draw(t, "steps") {
				namespace := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "namespace")
				switch rapid.SampledFrom([]string{"claim", "claim", "claim", "release", "put", "away"}).Draw(t, "step") {
				case "claim":
					w.claim(ctx, namespace)
				case "release":
					w.release(ctx, namespace)
				case "put":
					w.put(ctx, namespace)
				case "away":
					if w.c.Failing() {
						w.c.Fail(nil)
					} else {
						w.c.Fail(drover.Errorf(drover.Unavailable, "no leader"))
					}
				}
				w.check(ctx)
			}
			cancel()
			<-done
		}
	})
}

// The line of a claim in namespace default is what it was before environments had namespaces, and is read as that.
func TestAJournalFromBeforeNamespaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := exectest.NewControl()
	s, stop := exectest.Start(t, c, runner.Config{})
	exectest.Put(t, s, "e", 0)
	_, err := s.PutEnvironment(t.Context(), execution.Environment{ID: "e", Namespace: "a", Image: "host"})
	require.NoError(t, err)
	stop()
	c.StopRefill()
	alloc := c.Add("e")
	line := fmt.Sprintf(`{"claim":{"alloc":%q,"claim":{"RunnerID":"e-%s","ClaimedAt":1}}}`+"\n", alloc.ID, alloc.ID)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "claims.journal"), []byte(line), 0o600))
	s, _ = exectest.Start(t, c, journalIn(dir))
	r, err := s.Runner(t.Context(), "e-"+alloc.ID)
	require.NoError(t, err)
	require.Empty(t, r.Namespace)
	require.Equal(t, "e", r.Environment)
	_, err = s.Runner(t.Context(), "a~e-"+alloc.ID)
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
}
