package executor

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/appendlog"
)

// ledgerLimit is the size from which the ledger is written anew, with what still counts. If more than half of that is
// left, the next limit is twice what was left. Otherwise a full ledger would be written anew for each line.
const ledgerLimit = 8 << 20

// ledger remembers executions across restarts: that they were started, how they ended, and which webhooks are still to
// be told.
type ledger struct {
	mu   sync.Mutex // guards what follows
	log  *appendlog.File
	next int64 // from this size on it is written anew
	kept map[string]*record
}

// record is what is known of one execution.
type record struct {
	Execution   execution.Execution `json:"execution"`         // with its receipt when it ended; without variables
	Environment string              `json:"environment"`       // its key
	Webhook     string              `json:"webhook,omitempty"` // to be told
	Request     string              `json:"request,omitempty"` // a digest, of a request with an idempotency key
	EndedAt     time.Time           `json:"endedAt,omitzero"`
	Lease       uint64              `json:"lease,omitempty"` // of its runner; see Config

	raw      []byte // its line
	dropped  bool   // kept for its webhook only
	recorded bool   // it is in the Records
}

func (r record) terms() terms {
	return terms{webhook: r.Webhook, request: r.Request, recorded: r.recorded}
}

// ledgerLine is one line of the file; exactly one of its fields is set. A later record of the same execution
// replaces the earlier.
type ledgerLine struct {
	Record *record `json:"record,omitempty"`
	Told   string  `json:"told,omitempty"` // an execution
}

// openLedger opens the file, or makes it; an empty path keeps nothing. The records are read by read, once.
func openLedger(path string) (*ledger, error) {
	log, err := appendlog.Open(path, appendlog.Lines)
	if err != nil {
		return nil, err
	}
	return &ledger{log: log, next: ledgerLimit, kept: map[string]*record{}}, nil
}

// read returns what an earlier process left, in the order of the lines. What ended before the time is only kept for a
// webhook.
func (l *ledger) read(since time.Time) (records []record, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var order []string
	err = l.log.Read(func(raw []byte, _ appendlog.Span) {
		var line ledgerLine
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
		r.dropped = old
		records = append(records, *r)
	}
	return records, err
}

// write notes how the execution stands. Errors: those of the disk.
func (l *ledger) write(r record) error {
	if !l.log.Kept() {
		return nil
	}
	r.Execution.Spec.Env = nil
	r.Execution.Spec.Argv = shortened(r.Execution.Spec.Argv)
	raw, err := json.Marshal(ledgerLine{Record: &r})
	if err != nil {
		return err
	}
	r.raw = append(raw, '\n')
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept[r.Execution.ID] = &r
	return l.append(r.raw)
}

// told notes that the webhook needs no telling any more.
func (l *ledger) told(id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.kept[id]
	if r == nil {
		return nil
	}
	r.Webhook = ""
	if r.dropped {
		delete(l.kept, id)
	}
	raw, err := json.Marshal(ledgerLine{Told: id})
	if err != nil {
		return err
	}
	return l.append(append(raw, '\n'))
}

// drop forgets an execution that nobody can ask for any more.
func (l *ledger) drop(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.kept[id]
	if r == nil {
		return
	}
	if r.dropped = true; r.Webhook == "" {
		delete(l.kept, id)
	}
}

// forget drops an execution that others keep.
func (l *ledger) forget(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.kept, id)
}

// append adds a line; mu is held. From the size limit on it writes the whole file anew instead: kept has the new
// line's content already. If that fails the line is added to the old file, which then only is longer than needed.
func (l *ledger) append(raw []byte) error {
	if l.log.Size()+int64(len(raw)) < l.next {
		return l.log.Append(raw)
	}
	var all []byte
	for _, r := range l.kept {
		line := r.raw
		if again, err := json.Marshal(ledgerLine{Record: r}); err == nil { // it may have been told since
			line = append(again, '\n')
		}
		all = append(all, line...)
	}
	l.next = max(ledgerLimit, 2*int64(len(all)))
	if err := l.log.Replace(all); err != nil {
		return l.log.Append(raw)
	}
	return nil
}

// close closes the file; every line is written by then, as append does not buffer.
func (l *ledger) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.Close()
}
