package answer

import (
	"bufio"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/tables"
)

// Lister answers a list of T shown as V.
type Lister[T, V any] struct {
	On      []Source // what it waits for, at most three; its index is the highest of these tables'
	Items   func(q Query, s Snapshot) iter.Seq[T]
	ID      func(T) string
	Created func(T) uint64 // if set, the order is by create index, unless a prefix was asked for
	View    func(T, Snapshot) V
	Keep    func(T) bool // optional, beside the filter
	Search[T]
	// Sees reports whether the caller may know of the item. Required: Everybody where the route's need says it all.
	Sees func(c *rights.Caller, v T) bool
}

// Everybody is the Sees of lists whose routes need a right to all that is in them.
func Everybody[T any](*rights.Caller, T) bool { return true }

// In is the Sees of what belongs to a namespace, for who has the capability there.
func In[T any](capability policy.Capability, namespace func(T) string) func(c *rights.Caller, v T) bool {
	return func(c *rights.Caller, v T) bool { return c.Namespace(namespace(v), capability) }
}

// HasPrefix is a Keep for tables that are not iterated by the query's prefix.
func HasPrefix[T any](r *http.Request, name func(T) string) func(T) bool {
	prefix := r.URL.Query().Get("prefix")
	return func(v T) bool { return strings.HasPrefix(name(v), prefix) }
}

// Serve answers a page of the list, blocking if asked. Errors: Invalid (parameters, filter), Canceled.
func (l Lister[T, V]) Serve(c *Cluster, w http.ResponseWriter, r *http.Request) error {
	q, err := c.ParseQuery(r)
	if err != nil {
		return err
	}
	match, err := Compile[T](q.Filter)
	if err != nil {
		return err
	}
	snap, index, err := c.Await(r.Context(), q, l.On, func(s Snapshot) uint64 { return highest(s, l.On) })
	if err != nil {
		return err
	}
	page, err := l.page(q, snap, httpapi.CallerOf(r.Context()), match)
	if err != nil {
		return err
	}
	c.SetIndex(w, index)
	if q.PerPage > 0 {
		w.Header().Set(totalHeader, strconv.Itoa(page.total))
	}
	if page.counts != nil {
		w.Header().Set(countsHeader, page.said())
	}
	if table := l.On[0].Table; index == 0 && (table == tables.Evals || table == tables.Allocs) {
		w.Header().Set(indexHeader, "0") // clients look for that, to tell that nothing ever was
	}
	if page.next != "" {
		w.Header().Set("X-Nomad-NextToken", page.next)
	}
	return writeList(w, r, func(yield func(V) bool) {
		for _, it := range page.items {
			if !yield(l.View(it, snap)) {
				return
			}
		}
	})
}

// highest is the index of the table that changed last.
func highest(s Snapshot, on []Source) (index uint64) {
	for _, src := range on {
		index = max(index, s.TableIndex(src.Table))
	}
	return index
}

// writeList encodes element by element, so that a long list is never held twice.
func writeList[V any](w http.ResponseWriter, r *http.Request, items iter.Seq[V]) error {
	if httpapi.Pretty(r) {
		all := slices.AppendSeq([]V{}, items)
		return httpapi.WriteJSON(w, r, http.StatusOK, all)
	}
	w.Header().Set("Content-Type", "application/json")
	out := bufio.NewWriterSize(w, 32<<10)
	_ = out.WriteByte('[') // a bufio.Writer keeps its first error for Flush
	first := true
	for v := range items {
		buf, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("encoding a list element: %w", err)
		}
		if !first {
			_ = out.WriteByte(',')
		}
		first = false
		if _, err := out.Write(buf); err != nil {
			return nil // the client is gone
		}
	}
	_ = out.WriteByte(']')
	_ = out.Flush() // fails only when the client is gone
	return nil
}
