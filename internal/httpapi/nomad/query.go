package nomad

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
)

// maxWait is the default and the limit of a blocking query.
const maxWait = 5 * time.Minute

// query is what Nomad's query parameters ask for.
type query struct {
	namespace string // "*" = all
	prefix    string
	filter    string
	perPage   int
	next      string
	reverse   bool
	minIndex  uint64
	wait      time.Duration
}

func (f *Face) parseQuery(r *http.Request) (q query, err error) {
	v := r.URL.Query()
	if err := f.checkRegion(v.Get("region")); err != nil {
		return q, err
	}
	q = query{namespace: namespaceOf(r), prefix: v.Get("prefix"), filter: v.Get("filter"), next: v.Get("next_token")}
	if q.reverse, err = httpapi.BoolParam(r, "reverse", false); err != nil {
		return q, err
	}
	perPage, err := httpapi.IntParam(r, "per_page", 0)
	if err != nil {
		return q, err
	}
	if perPage < 0 || perPage > 1<<31-1 {
		return q, drover.Errorf(drover.Invalid, "parameter \"per_page\" is %d, but must be from 0 to 2147483647", perPage)
	}
	q.perPage = int(perPage)
	if q.minIndex, err = httpapi.UintParam(r, "index", 0); err != nil {
		return q, err
	}
	if q.wait, err = httpapi.DurationParam(r, "wait", maxWait); err != nil {
		return q, err
	}
	if q.wait <= 0 || q.wait > maxWait {
		q.wait = maxWait
	}
	return q, nil
}

func (f *Face) checkRegion(region string) error {
	if region == "" || region == f.Region {
		return nil
	}
	return drover.Errorf(drover.Invalid, "No path to region %q: this cluster is region %q", region, f.Region)
}

func namespaceOf(r *http.Request) string {
	v := r.URL.Query()["namespace"]
	if len(v) == 0 || v[0] == "" {
		return drover.DefaultNamespace
	}
	return v[0]
}

// source is something that a blocking query waits for. Its index is the table's.
type source struct {
	table string
	key   string // a row; "" = the whole table
	watch string // what to watch instead of the table
}

func (s source) on(state State) <-chan struct{} { return state.Watch(cmp.Or(s.watch, s.table), s.key) }

// await blocks while the index that indexOf computes is not above what the client knows, at most q.wait. It returns
// the snapshot to answer from, and its index.
func (f *Face) await(ctx context.Context, q query, on []source, indexOf func(Snapshot) uint64) (Snapshot, uint64, error) {
	var timer <-chan time.Time
	for {
		var watches [3]<-chan struct{} // taken before the snapshot, so that no change falls between
		if q.minIndex > 0 {
			for i, s := range on {
				watches[i] = s.on(f.State)
			}
		}
		snap := f.State.Snapshot()
		index := indexOf(snap)
		if index > q.minIndex || q.minIndex == 0 {
			return snap, index, nil
		}
		if timer == nil {
			t := f.Clock.NewTimer(q.wait)
			defer t.Stop()
			timer = t.C()
		}
		select {
		case <-watches[0]:
		case <-watches[1]:
		case <-watches[2]:
		case <-timer:
			return snap, index, nil
		case <-ctx.Done():
			return nil, 0, drover.Errorf(drover.Canceled, "waiting for index %d: %w", q.minIndex, context.Cause(ctx))
		}
	}
}

const indexHeader = "X-Nomad-Index"

// setIndex says how new the answer is. It is never 0, even of a table that nothing was ever in: a client that waits for
// what follows 0 would be answered at once, again and again.
func (f *Face) setIndex(w http.ResponseWriter, index uint64) {
	h := w.Header()
	h.Set(indexHeader, strconv.FormatUint(max(index, 1), 10))
	h.Set("X-Nomad-LastContact", "0")
	h.Set("X-Nomad-KnownLeader", strconv.FormatBool(f.Agent.Leader() != ""))
}

// reply answers a read that has no index of its own with the state's.
func (f *Face) reply(w http.ResponseWriter, r *http.Request, v any) error {
	f.setIndex(w, f.State.Snapshot().Index())
	return httpapi.WriteJSON(w, r, http.StatusOK, v)
}

// done answers that something was done which has nothing to tell.
func (f *Face) done(w http.ResponseWriter, r *http.Request) error {
	return f.reply(w, r, struct{ Index uint64 }{f.State.Snapshot().Index()})
}

// written answers a write.
func (f *Face) written(w http.ResponseWriter, r *http.Request, o drover.Outcome, v any) error {
	f.setIndex(w, o.Index)
	return httpapi.WriteJSON(w, r, http.StatusOK, v)
}

// single answers with one object that find returns with its index, blocking if asked; 404 says "<what> not found".
// While the object is unknown its index is the table's.
func single[T any](f *Face, w http.ResponseWriter, r *http.Request, on source, what string, find func(q query, s Snapshot) (*T, uint64)) error {
	q, err := f.parseQuery(r)
	if err != nil {
		return err
	}
	if v, _ := find(q, f.State.Snapshot()); v == nil {
		on.key = "" // watches on rows that never come would be kept for ever
	}
	var found *T
	_, index, err := f.await(r.Context(), q, []source{on}, func(s Snapshot) uint64 {
		v, index := find(q, s)
		if found = v; v == nil {
			index = s.TableIndex(on.table)
		}
		return index
	})
	if err != nil {
		return err
	}
	f.setIndex(w, index)
	if found == nil {
		return drover.Errorf(drover.NotFound, "%s not found", what)
	}
	return httpapi.WriteJSON(w, r, http.StatusOK, found)
}
