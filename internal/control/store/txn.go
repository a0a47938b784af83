package store

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/quota"
	"github.com/drover-project/drover/internal/tables"
)

// Txn is the open write transaction of one entry. Its reads see its own writes. Not for several goroutines.
type Txn struct {
	reader
	store     *Store
	restoring bool
	jobs      map[drover.NamespacedID]*JobRow // changed counts, own copies
	usage     map[string]*usageRow            // changed usage, own copies
	tenants   map[string]*quota.Use           // changed use by namespace
	requotaed map[string]struct{}             // quotas whose limit or namespaces changed
	touched   map[watchKey]struct{}
	services  serviceChanges
}

// Commit makes the writes visible at the entry's index and wakes the watches.
func (t *Txn) Commit() *Snapshot {
	t.flush()
	t.txn.Commit()
	next := &Snapshot{reader{db: t.db, txn: t.db.Txn(false), allocs: t.allocs, index: t.index, tables: t.tables, executions: t.executions}}
	t.store.current.Store(next)
	t.store.writing.Unlock()
	if t.restoring {
		t.store.watches.wakeAll()
	} else {
		t.store.watches.wake(t.touched)
	}
	return next
}

// Abort drops the writes.
func (t *Txn) Abort() {
	t.txn.Abort()
	t.store.writing.Unlock()
}

func (t *Txn) flush() {
	for _, r := range t.jobs {
		t.insert(tables.JobSummaries, r)
	}
	for _, u := range t.usage {
		t.insert(tableUsage, u)
	}
	clear(t.jobs)
	clear(t.usage)
	t.flushTenants()
}

// put stores a value and wakes who watches its table or its key; the key is that of the watch.
func (t *Txn) put(table, key string, v any) {
	t.insert(table, v)
	t.touch(table, key)
}

// drop forgets a value and wakes who watches its table or its key.
func (t *Txn) drop(table, key string, v any) {
	t.remove(table, v)
	t.touch(table, key)
}

func (t *Txn) insert(table string, v any) {
	if err := t.txn.Insert(table, v); err != nil {
		panic(err) // a table that the schema does not have
	}
}

func (t *Txn) remove(table string, v any) {
	if err := t.txn.Delete(table, v); err != nil {
		panic(err)
	}
}

// touch counts a change of the table and wakes who watches it or the key.
func (t *Txn) touch(table, key string) {
	t.tables[table] = t.index
	t.touched[watchKey{table, ""}] = struct{}{}
	t.touched[watchKey{table, key}] = struct{}{}
}
