package answer

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
)

// Source is something that a blocking query waits for. Its index is the table's.
type Source struct {
	Table string // of package tables
	Key   string // a row; "" = the whole table
	Watch string // what to watch instead of the table
}

func (s Source) watch(state State) <-chan struct{} {
	return state.Watch(cmp.Or(s.Watch, s.Table), s.Key)
}

// Await blocks while the index that indexOf computes is not above what the client knows, at most q.Wait. It returns the
// snapshot to answer from, and its index. It waits for at most three sources. Errors: Canceled when ctx ends; Forbidden when the caller may
// not ask any more.
func (c *Cluster) Await(
	ctx context.Context, q Query, on []Source, indexOf func(Snapshot) uint64,
) (Snapshot, uint64, error) {
	var timer <-chan time.Time
	for {
		var watches [3]<-chan struct{} // taken before the snapshot, so that no change falls between
		if q.MinIndex > 0 {
			for i, s := range on {
				watches[i] = s.watch(c.State)
			}
		}
		snap := c.State.Snapshot()
		index := indexOf(snap)
		switch {
		case q.MinIndex == 0:
			return snap, index, nil
		case index > q.MinIndex:
			return snap, index, httpapi.Again(ctx)
		}
		if timer == nil {
			t := c.Clock.NewTimer(q.Wait)
			defer t.Stop()
			timer = t.C()
		}
		select {
		case <-watches[0]:
		case <-watches[1]:
		case <-watches[2]:
		case <-timer:
			return snap, index, httpapi.Again(ctx)
		case <-ctx.Done():
			return nil, 0, drover.Errorf(drover.Canceled, "waiting for index %d: %w", q.MinIndex, context.Cause(ctx))
		}
	}
}

// AwaitTable is Await for what depends on one table alone.
func (c *Cluster) AwaitTable(ctx context.Context, q Query, table string) (Snapshot, uint64, error) {
	return c.Await(ctx, q, []Source{{Table: table}}, func(s Snapshot) uint64 { return s.TableIndex(table) })
}

// Single answers with the one object that find returns together with its index, blocking if asked. Without an object
// the answer is 404 "<what> not found", and its index the table's. Who may know of the object find decides.
func Single[T any](
	c *Cluster, w http.ResponseWriter, r *http.Request, on Source, what string, find func(q Query, s Snapshot) (*T, uint64),
) error {
	q, err := c.ParseQuery(r)
	if err != nil {
		return err
	}
	if v, _ := find(q, c.State.Snapshot()); v == nil {
		on.Key = "" // watches on rows that never come would be kept for ever
	}
	var found *T
	_, index, err := c.Await(r.Context(), q, []Source{on}, func(s Snapshot) uint64 {
		v, index := find(q, s)
		if found = v; v == nil {
			index = s.TableIndex(on.Table)
		}
		return index
	})
	if err != nil {
		return err
	}
	c.SetIndex(w, index)
	if found == nil {
		return drover.Errorf(drover.NotFound, "%s not found", what)
	}
	return httpapi.WriteJSON(w, r, http.StatusOK, found)
}
