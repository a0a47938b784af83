package office

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/appendlog"
	"github.com/drover-project/drover/internal/clock"
)

// AuditLog keeps what the fleet and its operators did, with the reasons: the newest in memory, more in files.
type AuditLog struct {
	path  string // "" = memory only
	clock clock.Clock

	mu   sync.Mutex
	ring []fleet.Audit   // guarded by mu
	file *appendlog.File // guarded by mu
	size int64           // of the file, from which the next one begins
}

const (
	auditKept = 4000     // entries in memory
	auditSize = 16 << 20 // bytes of a file; one older file is kept
)

// OpenAudit reads back what was kept in the folder, which it makes; "" keeps entries in memory only. Errors: the folder or a
// file can't be used.
func OpenAudit(dir string, c clock.Clock) (*AuditLog, error) {
	a := &AuditLog{clock: c, size: auditSize}
	if dir == "" {
		var err error
		a.file, err = appendlog.Open("", appendlog.Lines)
		return a, err
	}
	if err := os.MkdirAll(dir, 0o711); err != nil { // loopback's machines may live below
		return nil, fmt.Errorf("making the fleet's folder: %w", err)
	}
	a.path = filepath.Join(dir, "audit.jsonl")
	if _, err := os.Stat(a.path + ".1"); err == nil {
		old, err := a.load(a.path + ".1")
		if err != nil {
			return nil, err
		}
		_ = old.Close() // it was only read
	}
	var err error
	a.file, err = a.load(a.path)
	return a, err
}

// load remembers what is in a file, and leaves it open behind its last entry.
func (a *AuditLog) load(path string) (*appendlog.File, error) {
	f, err := appendlog.Open(path, appendlog.Lines)
	if err != nil {
		return nil, fmt.Errorf("reading the fleet's audit log: %w", err)
	}
	err = f.Read(func(line []byte, _ appendlog.Span) {
		var e fleet.Audit
		if json.Unmarshal(line, &e) == nil { // else an older program tore it in the midst of the file
			a.remember(e)
		}
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading the fleet's audit log: %w", err), f.Close())
	}
	return f, nil
}

// remember keeps the newest lines in memory, at least auditKept and less than twice as many.
func (a *AuditLog) remember(e fleet.Audit) {
	if len(a.ring) >= 2*auditKept {
		a.ring = slices.Clone(a.ring[auditKept:])
	}
	a.ring = append(a.ring, e)
}

// Add appends an entry, at the time of now if it has none. It never fails: if the disk is full, the entry is in memory only.
func (a *AuditLog) Add(e fleet.Audit) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e.At.IsZero() {
		e.At = a.clock.Now()
	}
	e.At = e.At.UTC()
	a.remember(e)
	line, _ := json.Marshal(e) // plain values
	_ = a.file.Append(append(line, '\n'))
	if a.file.Size() >= a.size {
		_ = a.file.Rotate(a.path + ".1") // else the file grows on
	}
}

// List returns the newest entries that match, the newest last.
func (a *AuditLog) List(match func(*fleet.Audit) bool, most int) []fleet.Audit {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := []fleet.Audit{}
	for i := len(a.ring) - 1; i >= 0 && len(out) < most; i-- {
		if match(&a.ring[i]) {
			out = append(out, a.ring[i])
		}
	}
	slices.Reverse(out)
	return out
}

// Close closes the file.
func (a *AuditLog) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.file.Close() // nothing is waited for
}

// AuditQuery asks for the newest entries about a pool and an instance; "" is any.
type AuditQuery struct {
	Pool, Instance string // of the instance the beginning of its id
	Most           int
}

func (q AuditQuery) match(e *fleet.Audit) bool {
	return (q.Pool == "" || e.Pool == q.Pool) && (q.Instance == "" || e.Instance != "" && strings.HasPrefix(e.Instance, q.Instance) ||
		slices.ContainsFunc(e.Several, func(i string) bool { return strings.HasPrefix(i, q.Instance) }))
}

// OwnAudit is Audit of what this server did.
func (o *Office) OwnAudit(q AuditQuery) []fleet.Audit { return o.deps.Audit.List(q.match, q.Most) }

// Audit returns the newest entries of all servers about a pool and an instance, the newest last; "" is any. Each server has kept
// what it did as it led. The last entries, "incomplete", say what is missing: which server does not answer, and of which time what
// was bought and returned is told from the state, as nobody has noted it.
func (o *Office) Audit(ctx context.Context, poolName, instance string, most int) ([]fleet.Audit, error) {
	q := AuditQuery{poolName, instance, most}
	if o.deps.Others == nil {
		return o.OwnAudit(q), nil
	}
	q.Most = 2 * auditKept // all that there are: else it is not known what is missing
	list := o.OwnAudit(q)
	others, silent := o.deps.Others(ctx, q)
	list = append(list, others...)
	missed := o.missed(q, list)
	var gaps []fleet.Audit
	for _, name := range silent {
		gaps = append(gaps, o.gap("silent", "server "+name+" does not answer: what it did is missing here"))
	}
	if n := len(missed) - 1; n >= 0 {
		list, gaps = append(list, missed[:n]...), append(gaps, missed[n])
	}
	slices.SortStableFunc(list, func(a, b fleet.Audit) int { return a.At.Compare(b.At) })
	return append(list[max(0, len(list)-most):], gaps...), nil
}
