package ledger

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/appendlog"
)

// limit is the size from which the ledger is written anew, with what still counts. If more than half of that is
// left, the next limit is twice what was left. Otherwise a full ledger would be written anew for each line.
const limit = 8 << 20

// Ledger is the file of executions, with what counts of it in memory. Its methods may be called at once.
type Ledger struct {
	mu   sync.Mutex // guards what follows
	log  *appendlog.File
	next int64 // from this size on it is written anew
	kept map[string]*Record
}

// Record is what is known of one execution.
type Record struct {
	Execution   execution.Execution `json:"execution"`         // with its receipt when it ended; without variables
	Environment string              `json:"environment"`       // its key
	Webhook     string              `json:"webhook,omitempty"` // to be told
	Request     string              `json:"request,omitempty"` // a digest, of a request with an idempotency key
	EndedAt     time.Time           `json:"endedAt,omitzero"`
	Lease       uint64              `json:"lease,omitempty"` // of its runner, when several servers hand runners out

	Dropped  bool `json:"-"` // kept for its webhook only
	Recorded bool `json:"-"` // it is known to other servers, too

	raw []byte // its line
}

// entry is one line of the file; exactly one of its fields is set. A later record of the same execution
// replaces the earlier.
type entry struct {
	Record *Record `json:"record,omitempty"`
	Told   string  `json:"told,omitempty"` // an execution
}

// Open opens the file, or makes it; an empty path keeps nothing. The records are read by Read, once.
func Open(path string) (*Ledger, error) {
	log, err := appendlog.Open(path, appendlog.Lines)
	if err != nil {
		return nil, err
	}
	return &Ledger{log: log, next: limit, kept: map[string]*Record{}}, nil
}

// Read returns what an earlier process left, in the order of the lines. What ended before the time is only kept for a
// webhook.
func (l *Ledger) Read(since time.Time) (records []Record, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var order []string
	err = l.log.Read(func(raw []byte, _ appendlog.Span) {
		var line entry
		switch {
		case json.Unmarshal(raw, &line) != nil:
		case line.Record != nil:
			id := line.Record.Execution.ID
			line.Record.raw = raw
			if l.kept[id] == nil {
				order = append(order, id)
			}
			l.kept[id] = line.Record
		case l.kept[line.Told] != nil:
			l.kept[line.Told].Webhook = ""
		}
	})
	for _, id := range order {
		r := l.kept[id]
		old := r.Execution.Receipt != nil && r.EndedAt.Before(since)
		if old && r.Webhook == "" {
			delete(l.kept, id)
			continue
		}
		r.Dropped = old
		records = append(records, *r)
	}
	return records, err
}

// Write notes how the execution stands. Errors: those of the disk.
func (l *Ledger) Write(r Record) error {
	if !l.log.Kept() {
		return nil
	}
	r.Execution.Spec.Env = nil
	r.Execution.Spec.Argv = Shortened(r.Execution.Spec.Argv)
	raw, err := json.Marshal(entry{Record: &r})
	if err != nil {
		return err
	}
	r.raw = append(raw, '\n')
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept[r.Execution.ID] = &r
	return l.append(r.raw)
}

// Told notes that the webhook needs no telling any more.
func (l *Ledger) Told(id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.kept[id]
	if r == nil {
		return nil
	}
	r.Webhook = ""
	if r.Dropped {
		delete(l.kept, id)
	}
	raw, err := json.Marshal(entry{Told: id})
	if err != nil {
		return err
	}
	return l.append(append(raw, '\n'))
}

// Drop forgets an execution that nobody can ask for any more.
func (l *Ledger) Drop(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.kept[id]
	if r == nil {
		return
	}
	if r.Dropped = true; r.Webhook == "" {
		delete(l.kept, id)
	}
}

// Forget drops an execution that others keep.
func (l *Ledger) Forget(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.kept, id)
}

// append adds a line; mu is held. From the size limit on it writes the whole file anew instead: kept has the new
// line's content already. If that fails the line is added to the old file, which then only is longer than needed.
func (l *Ledger) append(raw []byte) error {
	if l.log.Size()+int64(len(raw)) < l.next {
		return l.log.Append(raw)
	}
	var all []byte
	for _, r := range l.kept {
		line := r.raw
		if again, err := json.Marshal(entry{Record: r}); err == nil { // it may have been told since
			line = append(again, '\n')
		}
		all = append(all, line...)
	}
	l.next = max(limit, 2*int64(len(all)))
	if err := l.log.Replace(all); err != nil {
		return l.log.Append(raw)
	}
	return nil
}

// Close closes the file; every line is written by then, as append does not buffer.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.Close()
}

// maxArgv is how many bytes of a command are told and written down.
const maxArgv = 4 << 10

// Shortened returns argv with at most 4 KiB, the last argument cut and marked with "…". The argument is not changed.
func Shortened(argv []string) []string {
	room := maxArgv
	for i, a := range argv {
		if room -= len(a); room < 0 {
			return append(slices.Clone(argv[:i]), a[:max(0, len(a)+room)]+"…")
		}
	}
	return argv
}
