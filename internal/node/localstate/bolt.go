package localstate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

var bucketName = []byte("state")

// Bolt keeps records in a bbolt file, but those of warm pools in one beside it that needs no fsync (transient). A writer
// runs only while there is something to write.
type Bolt struct {
	db     *bbolt.DB
	pools  *transient
	found  map[string][]byte                 // in pools, when it was opened
	update func(func(*bbolt.Tx) error) error // db.Update; a test makes it fail
	log    *slog.Logger
	clock  clock.Clock

	mu      sync.Mutex // guards what follows
	jobs    *jobs
	pending map[string][]byte
	waiters []chan error
	writing bool
	closed  bool
	retry   clock.Timer     // after a failed write; nil = none is due
	last    time.Time       // of the last transaction's begin
	idle    *sync.Cond      // writing became false
	bolted  map[string]bool // allocations in the bbolt file: they stay there when their group becomes a warm pool
}

// OpenBolt opens or makes the file, and runners.log beside it. It fails when another process has it open.
func OpenBolt(path string, log *slog.Logger, c clock.Clock) (*Bolt, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the local state's folder: %w", err)
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, FreelistType: bbolt.FreelistMapType, NoFreelistSync: true})
	if err != nil {
		return nil, fmt.Errorf("opening the local state %s (does another agent run?): %w", path, err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(bucketName)
		return err
	})
	if err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("preparing the local state %s: %w", path, err)
	}
	b := &Bolt{
		db: db, update: db.Update, log: log, clock: c, jobs: newJobs(newFormat()), pending: map[string][]byte{}, bolted: map[string]bool{},
	}
	if b.pools, b.found, err = openTransient(filepath.Join(filepath.Dir(path), "runners.log"), bootID()); err != nil {
		_ = db.Close()
		return nil, err
	}
	b.idle = sync.NewCond(&b.mu)
	return b, nil
}

// bootID differs after each start of the machine.
func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

// Load returns everything. It is called once, before all else.
func (b *Bolt) Load() ([]Record, error) {
	entries := map[string][]byte{}
	err := b.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketName).ForEach(func(k, v []byte) error {
			entries[string(k)] = append([]byte(nil), v...)
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("reading the local state: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	records, err := b.jobs.assemble(entries)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		b.bolted[r.Alloc.ID] = true
	}
	more, err := b.pools.jobs.assemble(b.found)
	b.found = nil
	return append(records, more...), err
}

// ofPool reports whether the allocation is a warm runner. Their records come and go with each claim, so they have a file
// of their own (see transient).
func ofPool(a *drover.Allocation) bool {
	if a.Job == nil {
		return false
	}
	g := a.Job.Group(a.TaskGroup)
	return g != nil && g.Pool != nil
}

// transient reports whether the change belongs into the pools' file.
func (b *Bolt) transient(c Change) bool {
	if b.pools.has(c.allocID()) {
		return true
	}
	a, put := c.value.(*drover.Allocation)
	if !put || !ofPool(a) {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.bolted[a.ID]
}

// apart divides the changes into those of warm pools' allocations and others. Those of one allocation all go one way: it
// is in the file that its first change made it be in.
func (b *Bolt) apart(changes []Change) (pools, others []Change) {
	began := ""
	for _, c := range changes {
		if id := c.allocID(); id == began || b.transient(c) {
			pools, began = append(pools, c), id
		} else {
			others = append(others, c)
		}
	}
	return pools, others
}

// queuePace is how late a warm pool's change that nobody waits for is written, at most. Most are outdated by then: of a
// runner that is used up within it, half of all.
const queuePace = 100 * time.Millisecond

// queue has changes to warm pools' allocations written soon.
func (b *Bolt) queue(pools []Change) {
	if !b.pools.queue(pools) {
		return // they go with those before
	}
	b.clock.AfterFunc(queuePace, func() { _ = b.kept(b.pools.flush()) })
}

// kept has what could not be written to the pools' file tried again.
func (b *Bolt) kept(err error) error {
	if err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.tryLater(err)
	}
	return err
}

// Commit makes the changes and waits until they are durable.
func (b *Bolt) Commit(ctx context.Context, changes ...Change) error {
	pools, others := b.apart(changes)
	var err error
	if len(pools) > 0 {
		err = b.kept(b.pools.add(pools)) //nolint:contextcheck // a retry is of nobody's call
	}
	if len(others) > 0 || len(changes) == 0 {
		err = errors.Join(err, b.commit(ctx, others))
	}
	return err
}

// Settle waits until what was queued for the allocation is durable.
func (b *Bolt) Settle(ctx context.Context, allocID string) error {
	if b.pools.has(allocID) {
		return b.pools.settle(allocID)
	}
	return b.commit(ctx, nil)
}

// commit adds the changes and waits until they are on the disk, with all that was added before. When ctx ends first,
// they are written all the same.
func (b *Bolt) commit(ctx context.Context, changes []Change) error {
	done := make(chan error, 1)
	if err := b.add(changes, done); err != nil { //nolint:contextcheck // the writer is of nobody's call
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Queue makes the changes soon.
func (b *Bolt) Queue(changes ...Change) {
	pools, others := b.apart(changes)
	if len(pools) > 0 {
		b.queue(pools)
	}
	if len(others) == 0 {
		return
	}
	if err := b.add(others, nil); err != nil {
		b.log.Error("local state: a change was refused", "error", err)
	}
}

// add makes the changes pending and starts the writer if it rests. done, if not nil, gets the outcome of the
// transaction; it needs room for one value. Errors: os.ErrClosed, and those of encoding.
func (b *Bolt) add(changes []Change, done chan error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return fmt.Errorf("local state: %w", os.ErrClosed)
	}
	for _, c := range changes {
		entries, err := b.jobs.entries(c)
		if err != nil {
			return err
		}
		maps.Copy(b.pending, entries)
		if id, ok := strings.CutPrefix(c.key, allocPrefix); ok && c.value != nil {
			b.bolted[id] = true
		} else if ok {
			delete(b.bolted, id)
		}
	}
	if done != nil {
		b.waiters = append(b.waiters, done)
	}
	if !b.writing {
		b.writing = true
		go b.write() // ends when nothing is pending
	}
	return nil
}

// writePace is the least time between two transactions: under load they carry more each. A change after a pause waits for
// nothing.
const writePace = 3 * time.Millisecond

// write makes transactions until nothing is pending. What comes while one is being synced shares the next.
func (b *Bolt) write() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		if early := writePace - b.clock.Now().Sub(b.last); early > 0 && !b.closed {
			b.mu.Unlock()
			clock.Sleep(context.Background(), b.clock, early) //nolint:forbidigo // Close waits for it
			b.mu.Lock()
		}
		b.last = b.clock.Now()
		batch, waiters := b.pending, b.waiters
		b.pending, b.waiters = map[string][]byte{}, nil
		b.mu.Unlock()
		err := b.put(batch)
		for _, w := range waiters {
			w <- err
		}
		b.mu.Lock()
		if err != nil {
			maps.Copy(batch, b.pending) // newer values win
			b.pending = batch
			b.tryLater(err)
		}
		if len(b.waiters) == 0 && (len(b.pending) == 0 || err != nil) {
			b.writing = false
			b.idle.Broadcast()
			return
		}
	}
}

const retryAfter = time.Second

// tryLater writes what is pending in a while, or with the next change: a full disk may have room again. b.mu is held.
func (b *Bolt) tryLater(err error) {
	if b.retry != nil || b.closed {
		return
	}
	b.log.Error("local state: writing failed, trying again", "error", err, "in", retryAfter)
	b.retry = b.clock.AfterFunc(retryAfter, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.retry = nil
		if b.closed {
			return
		}
		if err := b.pools.flush(); err != nil {
			b.tryLater(err)
		}
		if !b.closed && !b.writing && len(b.pending) > 0 {
			b.writing = true
			go b.write() // ends when nothing is pending, or it cannot be written
		}
	})
}

// put makes one transaction, none for nothing.
func (b *Bolt) put(batch map[string][]byte) error {
	if len(batch) == 0 {
		return nil
	}
	return b.update(func(tx *bbolt.Tx) error { return apply(tx.Bucket(bucketName), batch) })
}

// apply puts the values into the bucket; nil deletes a key.
func apply(bucket *bbolt.Bucket, batch map[string][]byte) error {
	for k, v := range batch {
		var err error
		if v == nil {
			err = bucket.Delete([]byte(k))
		} else {
			err = bucket.Put([]byte(k), v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Close writes what is pending and closes the file.
func (b *Bolt) Close() error {
	b.mu.Lock()
	b.closed = true
	if b.retry != nil {
		b.retry.Stop()
	}
	for b.writing {
		b.idle.Wait()
	}
	batch := b.pending
	b.mu.Unlock()
	err := b.put(batch) // what an earlier failure left
	return errors.Join(err, b.pools.close(), b.db.Close())
}
