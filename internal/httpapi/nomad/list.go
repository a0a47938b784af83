package nomad

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/go-bexpr"
	"github.com/hashicorp/go-bexpr/grammar"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/tables"
)

// lister answers a list of T shown as V.
type lister[T, V any] struct {
	on      []source // what it waits for; its index is the highest of these tables'
	items   func(q query, s Snapshot) iter.Seq[T]
	id      func(T) string
	created func(T) uint64 // if set, the order is by create index, unless a prefix was asked for
	view    func(T, Snapshot) V
	keep    func(T) bool // optional, beside the filter
}

func (l lister[T, V]) serve(f *Face, w http.ResponseWriter, r *http.Request) error {
	q, err := f.parseQuery(r)
	if err != nil {
		return err
	}
	match, err := compile[T](q.filter)
	if err != nil {
		return err
	}
	snap, index, err := f.await(r.Context(), q, l.on, func(s Snapshot) uint64 { return highest(s, l.on) })
	if err != nil {
		return err
	}
	items, next, err := l.page(q, snap, match)
	if err != nil {
		return err
	}
	f.setIndex(w, index)
	if table := l.on[0].table; index == 0 && (table == tables.Evals || table == tables.Allocs) {
		w.Header().Set(indexHeader, "0") // clients look for that, to tell that nothing ever was
	}
	if next != "" {
		w.Header().Set("X-Nomad-NextToken", next)
	}
	return writeList(w, r, func(yield func(V) bool) {
		for _, it := range items {
			if !yield(l.view(it, snap)) {
				return
			}
		}
	})
}

func highest(s Snapshot, on []source) (index uint64) {
	for _, src := range on {
		index = max(index, s.TableIndex(src.table))
	}
	return index
}

// page selects, orders and cuts.
func (l lister[T, V]) page(q query, s Snapshot, match func(T) (bool, error)) (items []T, next string, err error) {
	for it := range l.items(q, s) {
		if l.keep != nil && !l.keep(it) {
			continue
		}
		ok, err := match(it)
		if err != nil {
			return nil, "", err
		}
		if ok {
			items = append(items, it)
		}
	}
	byIndex := l.created != nil && q.prefix == ""
	key := func(it T) position {
		p := position{id: l.id(it)}
		if byIndex {
			p.index = l.created(it)
		}
		return p
	}
	compare := func(a, b T) int { return key(a).compare(key(b)) }
	if q.reverse {
		slices.SortFunc(items, func(a, b T) int { return compare(b, a) })
	} else {
		slices.SortFunc(items, compare)
	}
	if q.next != "" {
		from, err := parsePosition(q.next, byIndex)
		if err != nil {
			return nil, "", err
		}
		start, _ := slices.BinarySearchFunc(items, from, func(it T, p position) int {
			if c := key(it).compare(p); q.reverse {
				return -c
			} else {
				return c
			}
		})
		items = items[start:]
	}
	if q.perPage > 0 && len(items) > q.perPage {
		next = key(items[q.perPage]).token(byIndex)
		items = items[:q.perPage]
	}
	return items, next, nil
}

// position is where a page begins.
type position struct {
	index uint64
	id    string
}

func (p position) compare(o position) int {
	return cmp.Or(cmp.Compare(p.index, o.index), strings.Compare(p.id, o.id))
}

func (p position) token(byIndex bool) string {
	if byIndex {
		return fmt.Sprintf("%d.%s", p.index, p.id)
	}
	return p.id
}

func parsePosition(token string, byIndex bool) (position, error) {
	if !byIndex {
		return position{id: token}, nil
	}
	index, id, ok := strings.Cut(token, ".")
	n, err := strconv.ParseUint(index, 10, 64)
	if !ok || err != nil {
		return position{}, drover.Errorf(drover.Invalid, "next_token %q is none that a list gave", token)
	}
	return position{n, id}, nil
}

// maxExpressions bounds what go-bexpr tries while it parses.
const maxExpressions = 100_000

// checkPatterns refuses what go-bexpr would compile later, as it is: regular expressions that grow beyond bounds. What
// does not parse is left to it.
func checkPatterns(expression string) error {
	parsed, err := grammar.Parse("", []byte(expression), grammar.MaxExpressions(maxExpressions))
	if err != nil {
		return nil //nolint:nilerr // whoever evaluates it says so
	}
	return patternsIn(parsed)
}

func patternsIn(e any) error {
	switch e := e.(type) {
	case *grammar.BinaryExpression:
		return errors.Join(patternsIn(e.Left), patternsIn(e.Right))
	case *grammar.UnaryExpression:
		return patternsIn(e.Operand)
	case *grammar.CollectionExpression:
		return patternsIn(e.Inner)
	case *grammar.MatchExpression:
		if e.Value != nil && (e.Operator == grammar.MatchMatches || e.Operator == grammar.MatchNotMatches) {
			_, err := drover.CompilePattern(e.Value.Raw)
			return err
		}
	}
	return nil
}

// compile makes a predicate of a go-bexpr expression; "" keeps all.
func compile[T any](expression string) (func(T) (bool, error), error) {
	if expression == "" {
		return func(T) (bool, error) { return true, nil }, nil
	}
	if len(expression) > 8<<10 {
		return nil, drover.Errorf(drover.Invalid, "the filter expression is longer than 8192 bytes")
	}
	if err := checkPatterns(expression); err != nil {
		return nil, drover.Errorf(drover.Invalid, "failed to read filter expression: %w", err)
	}
	e, err := bexpr.CreateEvaluator(expression, bexpr.WithMaxExpressions(maxExpressions))
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "failed to read filter expression: %w", err)
	}
	return func(v T) (bool, error) {
		ok, err := e.Evaluate(v)
		if err != nil {
			return false, drover.Errorf(drover.Invalid, "failed to filter: %w", err)
		}
		return ok, nil
	}, nil
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

func unescape(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s // cannot be: net/http refuses malformed escapes
}
