package listing

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/minheap"
)

// The bounds of a query.
const (
	maxWords  = 16
	maxSearch = 512 // bytes of all words
)

// place is where an execution stands in the list, and where a page begins.
type place struct {
	number uint64
	text   string
	id     string
}

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.number, o.number), strings.Compare(p.text, o.text), strings.Compare(p.id, o.id))
}

// token is the place as a list's next_token.
func (p place) token() string {
	return fmt.Sprintf("%d.%s.%s", p.number, base64.RawURLEncoding.EncodeToString([]byte(p.text)), p.id)
}

// parsePlace is token's inverse. Errors: Invalid.
func parsePlace(token string) (place, error) {
	parts := strings.SplitN(token, ".", 3)
	if len(parts) == 3 {
		n, err := strconv.ParseUint(parts[0], 10, 64)
		text, unread := base64.RawURLEncoding.DecodeString(parts[1])
		if err == nil && unread == nil {
			return place{n, string(text), parts[2]}, nil
		}
	}
	return place{}, drover.Errorf(drover.Invalid, "next_token %q is none that this list gave", token)
}

// sorts are what a list is ordered by, by its name; the id decides among equals.
var sorts = map[string]func(x *execution.Listed) (uint64, string){
	"started":     func(x *execution.Listed) (uint64, string) { return instant(x.StartedAt), "" },
	"ended":       func(x *execution.Listed) (uint64, string) { return ended(x), "" },
	"wall":        receipt(func(r *execution.Receipt) int64 { return int64(r.Wall) }),
	"cpu":         receipt(func(r *execution.Receipt) int64 { return int64(r.UserCPU + r.SystemCPU) }),
	"memory":      receipt(func(r *execution.Receipt) int64 { return r.PeakMemory }),
	"status":      func(x *execution.Listed) (uint64, string) { return 0, Status(&x.Execution) },
	"runner":      func(x *execution.Listed) (uint64, string) { return 0, x.RunnerID },
	"environment": func(x *execution.Listed) (uint64, string) { return 0, execution.Key(x.Namespace, x.Environment) },
}

// instant is a time as a number that orders times; 0 is none.
func instant(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(max(0, t.UnixNano()))
}

// ended has what runs end after all else.
func ended(x *execution.Listed) uint64 {
	if x.Running {
		return math.MaxUint64
	}
	return instant(x.EndedAt)
}

func receipt(number func(r *execution.Receipt) int64) func(x *execution.Listed) (uint64, string) {
	return func(x *execution.Listed) (uint64, string) {
		if x.Receipt == nil {
			return 0, ""
		}
		return uint64(max(0, number(x.Receipt))), ""
	}
}

// Status is how an execution does, or why it ended, in the words of a query.
func Status(x *execution.Execution) string {
	if x.Receipt == nil {
		return execution.StatusRunning
	}
	return string(x.Receipt.Cause)
}

// Selection is a page of a list in the making. Make it by New; one goroutine uses it.
type Selection struct {
	query execution.ListQuery
	place func(x *execution.Listed) place
	less  func(a, b place) bool // in the order of the list
	from  *place
	exit  int
	total int
	kept  *minheap.Heap[placed] // the last one of those that are kept is its top
	known map[string]bool       // the ids of those that are kept
}

type placed struct {
	at   place
	item execution.Listed
}

// New begins a page. Errors: Invalid, which names what of the query is wrong.
func New(q execution.ListQuery) (*Selection, error) {
	s := &Selection{query: q, known: map[string]bool{}}
	name, falls := strings.CutPrefix(cmp.Or(q.Sort, "-started"), "-")
	by := sorts[name]
	if by == nil {
		return nil, drover.Errorf(drover.Invalid, "sort %q: want one of %s, with - before it for the reverse", q.Sort,
			strings.Join(execution.ListSorts(), ", "))
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	s.place = func(x *execution.Listed) place {
		n, text := by(x)
		return place{n, text, x.ID}
	}
	s.less = func(a, b place) bool { return a.compare(b) < 0 != falls && a != b }
	if q.After != "" {
		from, err := parsePlace(q.After)
		if err != nil {
			return nil, err
		}
		s.from = &from
	}
	s.query.Words = nil
	for _, word := range q.Words {
		s.query.Words = append(s.query.Words, strings.ToLower(word))
	}
	s.kept = minheap.New(func(a, b placed) bool { return s.less(b.at, a.at) }, nil)
	return s, nil
}

// check refuses what no list answers. Errors: Invalid.
func (s *Selection) check() (err error) {
	q := &s.query
	for _, status := range q.Statuses {
		if status != execution.StatusRunning && status != execution.StatusEnded && !slices.Contains(execution.Causes(), execution.Cause(status)) {
			return drover.Errorf(drover.Invalid, "status %q: want running, ended, or why it ended: one of %v", status, execution.Causes())
		}
	}
	if q.Exit != "" && q.Exit != execution.ExitNonzero {
		if s.exit, err = strconv.Atoi(q.Exit); err != nil || s.exit < 0 || s.exit > 255 {
			return drover.Errorf(drover.Invalid, "exit %q: want a code from 0 to 255, or %s", q.Exit, execution.ExitNonzero)
		}
	}
	switch {
	case q.PerPage < 1 || q.PerPage > execution.MaxListPage:
		return drover.Errorf(drover.Invalid, "per_page %d: want 1 to %d", q.PerPage, execution.MaxListPage)
	case len(q.Words) > maxWords || len(strings.Join(q.Words, " ")) > maxSearch:
		return drover.Errorf(drover.Invalid, "search: want at most %d words of together %d bytes", maxWords, maxSearch)
	case len(q.Statuses) > len(execution.Causes())+2:
		return drover.Errorf(drover.Invalid, "status: given more often than there are statuses")
	case !q.Since.IsZero() && !q.Until.IsZero() && q.Until.Before(q.Since):
		return drover.Errorf(drover.Invalid, "until is before since")
	}
	return nil
}

// Keeps reports whether the query keeps an execution.
func (s *Selection) Keeps(x *execution.Listed) bool {
	q := &s.query
	switch {
	case q.Runner != "" && x.RunnerID != q.Runner,
		q.Environment != "" && x.Environment != q.Environment && execution.Key(x.Namespace, x.Environment) != q.Environment,
		!q.Since.IsZero() && !x.Running && x.EndedAt.Before(q.Since),
		!q.Until.IsZero() && x.StartedAt.After(q.Until):
		return false
	}
	if status := Status(&x.Execution); len(q.Statuses) > 0 && !slices.Contains(q.Statuses, status) &&
		(status == execution.StatusRunning || !slices.Contains(q.Statuses, execution.StatusEnded)) {
		return false
	}
	if q.Exit != "" {
		if x.Receipt == nil || q.Exit == execution.ExitNonzero && x.Receipt.ExitCode == 0 ||
			q.Exit != execution.ExitNonzero && x.Receipt.ExitCode != s.exit {
			return false
		}
	}
	return len(q.Words) == 0 || !slices.ContainsFunc(q.Words, func(word string) bool { return !says(x, word) })
}

// says reports whether a text of the execution has the word in it.
func says(x *execution.Listed, word string) bool {
	in := func(text string) bool { return strings.Contains(strings.ToLower(text), word) }
	return in(x.ID) || in(x.RunnerID) || in(x.Environment) || slices.ContainsFunc(x.Spec.Argv, in)
}

// Add offers an execution, once.
func (s *Selection) Add(x *execution.Listed) {
	if s.Keeps(x) {
		s.total++
		s.keep(x)
	}
}

// AddPage offers what another selection of the same query kept. What is on a page of both stands in the list once.
func (s *Selection) AddPage(p *execution.ListPage) {
	s.total += p.Total
	for i := range p.Items {
		if s.known[p.Items[i].ID] {
			s.total--
			continue
		}
		s.keep(&p.Items[i])
	}
	if next, err := parsePlace(p.Next); err == nil { // nothing but its place is known of it: a page of so many ends before it in any case
		s.put(placed{at: next})
	}
}

func (s *Selection) keep(x *execution.Listed) {
	at := s.place(x)
	if s.from != nil && s.less(at, *s.from) {
		return
	}
	s.put(placed{at, *x})
}

// put keeps one more than a page has: the one with which the next begins.
func (s *Selection) put(p placed) {
	if s.kept.Len() > s.query.PerPage {
		if !s.less(p.at, s.kept.Top().at) {
			return
		}
		delete(s.known, s.kept.Pop().at.id)
	}
	s.known[p.at.id] = true
	s.kept.Push(p)
}

// Page is what was kept, in order. The selection is spent.
func (s *Selection) Page() execution.ListPage {
	all := make([]placed, s.kept.Len())
	for i := len(all) - 1; i >= 0; i-- {
		all[i] = s.kept.Pop()
	}
	page := execution.ListPage{Items: make([]execution.Listed, 0, min(len(all), s.query.PerPage)), Total: s.total}
	for i := range all {
		if i == s.query.PerPage {
			page.Next = all[i].at.token()
			break
		}
		page.Items = append(page.Items, all[i].item)
	}
	return page
}

// OfRecord is an execution as the servers' common records have it.
func OfRecord(r *execution.Record) execution.Listed {
	x := &r.Execution
	_, environment := execution.SplitKey(strings.TrimSuffix(x.RunnerID, "-"+x.AllocID))
	l := execution.Listed{Execution: *x, Namespace: execution.NamespaceOf(x.RunnerID), Environment: environment}
	if x.Running {
		l.StartedAt = r.Time()
		return l
	}
	l.EndedAt = r.Time()
	if x.Receipt != nil {
		l.StartedAt = x.Receipt.StartedAt
	}
	return l
}
