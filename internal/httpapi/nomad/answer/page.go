package answer

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/minheap"
	"github.com/drover-project/drover/internal/rights"
)

// totalHeader says of how many elements a page is one: of those that the filter and the search keep.
const totalHeader = "Drover-Total"

// countsHeader says how many of them have each status, were they not asked for by status: "dead=3, running=12".
const countsHeader = "Drover-Counts"

// Search is how a list is searched and ordered beyond what Nomad's lists are; all of it is optional.
type Search[T any] struct {
	Words  func(T) [4]string // the texts in which search= looks for each of its words
	Status func(T) string    // what status= asks for, one of several
	// Sorts are what sort= orders by, by its name: a number, and a text among equal numbers. Among equals the id decides.
	Sorts map[string]func(T) (n uint64, text string)
}

// What a list is searched for is bounded: each of its elements is looked at for each word, and for each status.
const (
	maxSearch   = 512 // bytes
	maxStatuses = 32
)

// position is where an element stands in its list, and where a page begins.
type position struct {
	index uint64
	text  string
	id    string
}

// compare orders by index, then by text, then by id. Lists that are ordered by id have neither of the others.
func (p position) compare(o position) int {
	return cmp.Or(cmp.Compare(p.index, o.index), strings.Compare(p.text, o.text), strings.Compare(p.id, o.id))
}

// order is how a list is ordered.
type order uint8

const (
	byID order = iota
	byIndex
	bySort
)

// token is the next_token of a list: the id, "index.id" if the list is ordered by index, and "index.text.id" if it is sorted.
func (p position) token(o order) string {
	switch o {
	case byID:
		return p.id
	case byIndex:
		return fmt.Sprintf("%d.%s", p.index, p.id)
	case bySort:
	}
	return fmt.Sprintf("%d.%s.%s", p.index, base64.RawURLEncoding.EncodeToString([]byte(p.text)), p.id)
}

// parsePosition is token's inverse. If the item is gone, the page begins with the one behind it. Errors: Invalid.
func parsePosition(token string, o order) (position, error) {
	if o == byID {
		return position{id: token}, nil
	}
	index, id, ok := strings.Cut(token, ".")
	p, text := position{id: id}, ""
	if o == bySort && ok {
		text, p.id, ok = strings.Cut(id, ".")
	}
	n, err := strconv.ParseUint(index, 10, 64)
	decoded, unread := base64.RawURLEncoding.DecodeString(text)
	if !ok || err != nil || unread != nil {
		return position{}, drover.Errorf(drover.Invalid, "next_token %q is none that a list gave", token)
	}
	p.index, p.text = n, string(decoded)
	return p, nil
}

// placed is an element of a list at its place.
type placed[T any] struct {
	at   position
	item T
}

// cut is a page of a list.
type cut[T any] struct {
	items  []T
	next   string         // where the next page begins; "" if it is the last
	total  int            // of the elements on all pages
	counts map[string]int // by status, as if none was asked for; nil if nobody wants them
}

// said is counts as its header has them.
func (p *cut[T]) said() string {
	var said []string
	for _, status := range slices.Sorted(maps.Keys(p.counts)) {
		said = append(said, status+"="+strconv.Itoa(p.counts[status]))
	}
	return strings.Join(said, ", ")
}

// page selects, orders and cuts. A page is selected in one pass: however long the list is, no more than the page is kept and ordered.
func (l Lister[T, V]) page(q Query, s Snapshot, caller *rights.Caller, match func(T) (bool, error)) (p cut[T], err error) {
	o, place, err := l.order(&q)
	if err != nil {
		return p, err
	}
	keep, err := l.keeps(&q)
	if err != nil {
		return p, err
	}
	if q.Counts != "" {
		p.counts = map[string]int{}
	}
	compare := func(a, b placed[T]) int { return a.at.compare(b.at) }
	if q.Reverse {
		compare = func(a, b placed[T]) int { return b.at.compare(a.at) }
	}
	var from *placed[T]
	if q.Next != "" {
		at, err := parsePosition(q.Next, o)
		if err != nil {
			return p, err
		}
		from = &placed[T]{at: at}
	}
	kept := selection[T]{most: q.PerPage + 1, heap: minheap.New(func(a, b placed[T]) bool { return compare(a, b) > 0 }, nil), compare: compare}
	for it := range l.Items(q, s) {
		if !l.Sees(caller, it) || l.Keep != nil && !l.Keep(it) || !keep(it) {
			continue
		}
		ok, err := match(it)
		if err != nil {
			return p, err
		}
		if !ok || !l.counted(&q, it, p.counts) {
			continue
		}
		p.total++
		if one := (placed[T]{place(it), it}); from == nil || compare(one, *from) >= 0 {
			kept.add(one)
		}
	}
	list := kept.all()
	if q.PerPage > 0 && len(list) > q.PerPage {
		p.next = list[q.PerPage].at.token(o)
		list = list[:q.PerPage]
	}
	p.items = make([]T, len(list))
	for i := range list {
		p.items[i] = list[i].item
	}
	return p, nil
}

// counted counts an element by its status, where that is wanted, and reports whether its status is one of those that are asked for.
func (l Lister[T, V]) counted(q *Query, it T, counts map[string]int) bool {
	if counts == nil && len(q.Statuses) == 0 {
		return true
	}
	status := l.Status(it)
	if counts != nil {
		counts[status]++
	}
	return len(q.Statuses) == 0 || slices.Contains(q.Statuses, status)
}

// order says how the list is ordered, and where an element stands in it. Errors: Invalid, which names what it can be sorted by.
func (l Lister[T, V]) order(q *Query) (order, func(T) position, error) {
	if q.Sort != "" {
		name, falls := strings.CutPrefix(q.Sort, "-")
		by, known := l.Sorts[name]
		if !known {
			return 0, nil, drover.Errorf(drover.Invalid, "parameter \"sort\" is %q, but must be one of %s, with - before it for the reverse",
				q.Sort, strings.Join(slices.Sorted(maps.Keys(l.Sorts)), ", "))
		}
		q.Reverse = q.Reverse != falls
		return bySort, func(it T) position {
			n, text := by(it)
			return position{n, text, l.ID(it)}
		}, nil
	}
	if l.Created != nil && q.Prefix == "" {
		return byIndex, func(it T) position { return position{index: l.Created(it), id: l.ID(it)} }, nil
	}
	return byID, func(it T) position { return position{id: l.ID(it)} }, nil
}

// keeps is what the search keeps. Errors: Invalid for a list that has none, and for too many words or statuses.
func (l Lister[T, V]) keeps(q *Query) (func(T) bool, error) {
	words := strings.Fields(strings.ToLower(q.Search))
	if l.Status == nil { // other lists have a status= of their own
		q.Statuses, q.Counts = nil, ""
	}
	switch {
	case len(words) > 0 && l.Words == nil:
		return nil, drover.Errorf(drover.Invalid, "parameter \"search\": this list is not searched; use filter")
	case len(q.Search) > maxSearch:
		return nil, drover.Errorf(drover.Invalid, "parameter \"search\" is longer than %d bytes", maxSearch)
	case q.Counts != "" && q.Counts != "status":
		return nil, drover.Errorf(drover.Invalid, "parameter \"counts\" is %q, but must be status", q.Counts)
	case len(q.Statuses) > maxStatuses:
		return nil, drover.Errorf(drover.Invalid, "parameter \"status\" is given more than %d times", maxStatuses)
	}
	return func(it T) bool {
		if len(words) == 0 {
			return true
		}
		texts := l.Words(it)
		for _, word := range words {
			if !slices.ContainsFunc(texts[:], func(text string) bool { return holds(text, word) }) {
				return false
			}
		}
		return true
	}, nil
}

// holds reports whether a text has a word in it, which is in lower case; that of the text does not matter.
func holds(text, word string) bool {
	if strings.Contains(text, word) {
		return true
	}
	for i := range len(text) {
		if c := text[i]; c >= 0x80 || 'A' <= c && c <= 'Z' {
			return strings.Contains(strings.ToLower(text), word)
		}
	}
	return false
}

// selection keeps the first elements of a list; all of one that is not cut.
type selection[T any] struct {
	most    int // 1: all
	compare func(a, b placed[T]) int
	heap    *minheap.Heap[placed[T]] // the last one of those that are kept is its top
	list    []placed[T]              // of all
}

func (s *selection[T]) add(p placed[T]) {
	switch {
	case s.most == 1:
		s.list = append(s.list, p)
	case s.heap.Len() < s.most:
		s.heap.Push(p)
	case s.compare(p, s.heap.Top()) < 0:
		s.heap.Pop()
		s.heap.Push(p)
	}
}

// all is what was kept, in order. The selection is spent.
func (s *selection[T]) all() []placed[T] {
	for s.heap.Len() > 0 {
		s.list = append(s.list, s.heap.Pop())
	}
	slices.SortFunc(s.list, s.compare)
	return s.list
}
