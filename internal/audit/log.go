package audit

import (
	"context"
	"log/slog"
	"net/netip"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/id"
)

// Config says what is recorded.
type Config struct {
	Node    string         // name of the agent, in each line
	Every   int            // of this many reads that are neither secret nor refused one is recorded; 0 = none
	Trusted []netip.Prefix // callers whose request ids and X-Forwarded-For are believed
	Filters []Filter
}

// Filter leaves lines out.
type Filter struct {
	Endpoints  []string // patterns of paths, with * for a part or, at the end, for all that follows; nil = all
	Stages     []string // nil = all
	Operations []string // methods; nil = all
}

// Log records requests in its sinks. All methods are for any number of goroutines.
type Log struct {
	cfg   Config
	clock clock.Clock
	ids   id.Source
	sinks []*Sink
	reads atomic.Uint64
	flood flood
	seldom
}

// Deps of a Log.
type Deps struct {
	Clock clock.Clock
	IDs   id.Source
	Log   *slog.Logger
}

// New returns a log of the sinks, which Run writes.
func New(cfg Config, d Deps, sinks ...*Sink) *Log {
	return &Log{cfg: cfg, clock: d.Clock, ids: d.IDs, sinks: sinks}
}

// NewID returns an id for a request.
func (l *Log) NewID() string { return l.ids.New() }

// Sampled reports whether the next read is one that is recorded.
func (l *Log) Sampled() bool {
	every := uint64(max(0, l.cfg.Every))
	return every == 1 || every > 1 && l.reads.Add(1)%every == 1
}

// Trusts reports whether a caller's request ids are believed. remote is its address, with a port or without.
func (l *Log) Trusts(remote string) bool {
	if len(l.cfg.Trusted) == 0 {
		return false
	}
	addr, err := netip.ParseAddr(remote)
	if err != nil {
		port, err := netip.ParseAddrPort(remote)
		if err != nil {
			return false
		}
		addr = port.Addr()
	}
	return slices.ContainsFunc(l.cfg.Trusted, func(p netip.Prefix) bool { return p.Contains(addr.Unmap()) })
}

// Record writes a line. Where a sink is enforced it returns once the line lasts; without wait, as for what was decided already, the line
// is kept until the sink takes it. Errors: Unavailable, with the sink and what it lacks.
func (l *Log) Record(e *Event, wait bool) error {
	e.Time = l.clock.Now()
	if l.excluded(e) {
		return nil
	}
	if !e.Allowed && (e.AccessorID == "" || e.AccessorID == "anonymous") && !l.flood.admit(e.Time) {
		return nil
	}
	e.ID = l.ids.New()
	var waiting []*entry
	body, left := e.encode(make([]byte, 0, 1024), l.cfg.Node), l.flood.left()
	for _, s := range l.sinks {
		one := s.put(body, left, wait)
		if one.done != nil {
			waiting = append(waiting, one)
		}
	}
	var first error
	for _, one := range waiting {
		if err := one.wait(l.clock); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// excluded reports whether a filter leaves the line out.
func (l *Log) excluded(e *Event) bool {
	return slices.ContainsFunc(l.cfg.Filters, func(f Filter) bool {
		return listed(f.Stages, e.Stage) && listed(f.Operations, e.Method) &&
			(len(f.Endpoints) == 0 || slices.ContainsFunc(f.Endpoints, func(p string) bool { return covers(p, e.Path) }))
	})
}

func listed(words []string, word string) bool {
	return len(words) == 0 || slices.ContainsFunc(words, func(w string) bool { return w == "*" || strings.EqualFold(w, word) })
}

func covers(pattern, of string) bool {
	if head, ok := strings.CutSuffix(pattern, "*"); ok && strings.HasPrefix(of, head) {
		return true
	}
	ok, err := path.Match(pattern, of)
	return ok && err == nil
}

// Run writes the sinks' lines until ctx ends, and then what is left.
func (l *Log) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for _, s := range l.sinks {
		all.Go(func() { s.run(ctx) }) // ends with ctx
	}
	all.Go(func() { // ends with ctx
		for clock.Sleep(ctx, l.clock, refusedEach) {
			l.tellRefused()
		}
	})
	all.Wait()
	return nil
}

// Close gives back what the sinks have open. Run has ended, or was never called.
func (l *Log) Close() {
	for _, s := range l.sinks {
		s.close()
	}
}

// maxRefused bounds the lines of one second about callers that nobody knows: whoever reaches the port could fill the disk with them.
const maxRefused = 50

// flood counts them.
type flood struct {
	mu      sync.Mutex
	second  time.Time // guarded by mu
	count   int       // guarded by mu: in that second
	dropped uint64    // guarded by mu: since a line told
}

func (f *flood) admit(now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if since := now.Sub(f.second); since >= time.Second || since < 0 {
		f.second, f.count = now, 0
	}
	if f.count++; f.count <= maxRefused {
		return true
	}
	f.dropped++
	return false
}

// left returns how many were left out since the last call.
func (f *flood) left() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.dropped
	f.dropped = 0
	return n
}

// errStopped is of lines that come after the end.
var errStopped = drover.Errorf(drover.Unavailable, "shutting down")
