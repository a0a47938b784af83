package localstate

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func sampleAlloc(id string) *drover.Allocation {
	job := &drover.Job{ID: "j", TaskGroups: []*drover.TaskGroup{{
		Name: "g", Count: new(2), MaxRunDuration: new(time.Minute),
		Tasks: []*drover.Task{{Name: "t", Config: map[string]any{"args": []any{"a", int64(3)}, "n": int64(7), "on": true, "f": 1.5}}},
	}}}
	return &drover.Allocation{ID: id, Job: job, TaskGroup: "g"}
}

func sampleTask() Task {
	return Task{
		State: &drover.TaskState{
			State: "running", StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
			Events: []*drover.TaskEvent{{Type: drover.TaskStarted, Time: 9, Details: map[string]string{"a": "b"}}},
		},
		Handle: json.RawMessage(`{"pid":12}`), Intent: "x/y/z", Done: map[string]bool{"artifacts": true},
	}
}

// TestAFileIsPrintedWithoutAnAgent, which must not use it; nothing is changed, and nothing made.
func TestAFileIsPrintedWithoutAnAgent(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	var out strings.Builder
	require.ErrorContains(t, Print(path, &out), "no such file")
	require.NoFileExists(t, path)
	b, err := OpenBolt(path, slog.New(slog.DiscardHandler), clock.Wall{})
	require.NoError(t, err)
	require.NoError(t, b.Commit(t.Context(), PutAlloc(sampleAlloc("a1")), PutTask("a1", "t", sampleTask())))
	require.ErrorContains(t, Print(path, &out), "an agent uses it")
	require.NoError(t, b.Close())
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, Print(path, &out))
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
	var printed struct{ Allocations map[string]Record }
	require.NoError(t, json.Unmarshal([]byte(out.String()), &printed))
	require.Equal(t, "j", printed.Allocations["a1"].Alloc.Job.ID)
	require.JSONEq(t, `{"pid":12}`, string(printed.Allocations["a1"].Tasks["t"].Handle))
	other := filepath.Join(t.TempDir(), "other.db")
	db, err := bbolt.Open(other, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	require.ErrorContains(t, Print(other, &out), "it is none of ours")
}

func TestBoltKeepsRecordsOverReopening(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "client", "state.db")
	b, err := OpenBolt(path, slog.New(slog.DiscardHandler), clock.Wall{})
	require.NoError(t, err)
	ctx := context.Background()
	require.NoError(
		t, b.Commit(ctx, PutAlloc(sampleAlloc("a1")), PutStatus("a1", Status{ClientStatus: "running"}), PutTask("a1", "t", sampleTask())),
	)
	require.NoError(t, b.Commit(ctx, PutAlloc(sampleAlloc("a2")), PutTask("a2", "t", sampleTask())))
	b.Queue(Drop("a2", "t")...)
	_, err = OpenBolt(path, slog.New(slog.DiscardHandler), clock.Wall{})
	require.ErrorContains(t, err, "does another agent run?")
	require.NoError(t, b.Close())
	require.Error(t, b.Commit(ctx, PutAlloc(sampleAlloc("a3"))))

	b, err = OpenBolt(path, slog.New(slog.DiscardHandler), clock.Wall{})
	require.NoError(t, err)
	records, err := b.Load()
	require.NoError(t, err)
	want := []Record{{Alloc: sampleAlloc("a1"), Status: Status{ClientStatus: "running"}, Tasks: map[string]Task{"t": sampleTask()}}}
	require.Empty(t, cmp.Diff(want, records))
	require.NoError(t, b.Close())
}

func TestBoltSharesWrites(t *testing.T) {
	t.Parallel()
	b, err := OpenBolt(filepath.Join(t.TempDir(), "state.db"), slog.New(slog.DiscardHandler), clock.Wall{})
	require.NoError(t, err)
	before := b.db.Stats().TxStats
	start := before.GetWrite()
	var wg sync.WaitGroup
	const n = 200
	for i := range n {
		wg.Go(func() { // ends when its commit is durable
			if err := b.Commit(context.Background(), PutTask(fmt.Sprint(i), "t", sampleTask())); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	after := b.db.Stats().TxStats
	t.Logf("%d commits took %d page writes", n, after.GetWrite()-start)
	require.Less(t, after.GetWrite()-start, int64(n*3))
	require.NoError(t, b.Close())
}

func TestBoltKeepsAJobOnce(t *testing.T) {
	t.Parallel()
	b, err := OpenBolt(filepath.Join(t.TempDir(), "state.db"), slog.New(slog.DiscardHandler), clock.Wall{})
	require.NoError(t, err)
	ctx := context.Background()
	job := func() (n int) {
		require.NoError(t, b.db.View(func(tx *bbolt.Tx) error {
			return tx.Bucket(bucketName).ForEach(func(k, _ []byte) error {
				if strings.HasPrefix(string(k), jobPrefix) {
					n++
				}
				return nil
			})
		}))
		return n
	}
	one, two, three := sampleAlloc("a1"), sampleAlloc("a2"), sampleAlloc("a3")
	two.Job = one.Job
	other := *one.Job
	other.Priority = 7
	three.Job = &other
	require.NoError(t, b.Commit(ctx, PutAlloc(one), PutAlloc(two), PutAlloc(three)))
	require.Equal(t, 2, job())
	moved := *two
	moved.Job = three.Job
	require.NoError(t, b.Commit(ctx, PutAlloc(&moved)))
	require.NoError(t, b.Commit(ctx, Drop("a1")...))
	require.Equal(t, 1, job())
	require.NoError(t, b.Commit(ctx, PutAlloc(one)), "the same job again, after its record went")
	require.Equal(t, 2, job())
	path := b.db.Path()
	require.NoError(t, b.Close())
	b, err = OpenBolt(path, slog.New(slog.DiscardHandler), clock.Wall{})
	require.NoError(t, err)
	records, err := b.Load()
	require.NoError(t, err)
	priority := map[string]int{}
	for _, r := range records {
		priority[r.Alloc.ID] = r.Alloc.Job.Priority
	}
	require.Equal(t, map[string]int{"a1": 0, "a2": 7, "a3": 7}, priority)
	require.NoError(t, b.Commit(ctx, append(Drop("a2"), Drop("a3")...)...))
	require.Equal(t, 1, job(), "an agent that was restarted knows who uses a job")
	require.NoError(t, b.Close())
}

// TestBoltReadsAnOlderRecord: agents before had the job in the allocation.
func TestBoltReadsAnOlderRecord(t *testing.T) {
	t.Parallel()
	f := newFormat()
	data, err := f.encode(PutAlloc(sampleAlloc("a1")))
	require.NoError(t, err)
	records, jobOf, err := f.assemble(map[string][]byte{"alloc/a1": data})
	require.NoError(t, err)
	require.Empty(t, jobOf)
	require.Empty(t, cmp.Diff([]Record{{Alloc: sampleAlloc("a1"), Tasks: map[string]Task{}}}, records))
}

// TestBoltDiskFull: the change is refused with the reason, what runs goes on, and nothing is lost once there is room.
func TestBoltDiskFull(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	b, err := OpenBolt(path, slog.New(slog.DiscardHandler), clock.Wall{})
	require.NoError(t, err)
	works := b.update
	full := atomic.Bool{}
	full.Store(true)
	b.update = func(f func(*bbolt.Tx) error) error {
		if full.Load() {
			return syscall.ENOSPC
		}
		return works(f)
	}
	ctx := context.Background()
	require.ErrorIs(t, b.Commit(ctx, PutAlloc(sampleAlloc("a1"))), syscall.ENOSPC)
	b.Queue(PutTask("a1", "t", Task{Intent: "old"}))
	require.ErrorIs(t, b.Commit(ctx, PutTask("a1", "t", Task{Intent: "new"})), syscall.ENOSPC)
	full.Store(false)
	require.NoError(t, b.Commit(ctx, PutAlloc(sampleAlloc("a2"))))
	records, err := b.Load()
	require.NoError(t, err)
	require.Len(t, records, 2)
	full.Store(true)
	b.Queue(PutTask("a2", "t", Task{Intent: "late"}))
	require.Error(t, b.Commit(ctx))
	full.Store(false)
	require.NoError(t, b.Close()) // tries once more
	b, err = OpenBolt(path, slog.New(slog.DiscardHandler), clock.Wall{})
	require.NoError(t, err)
	records, err = b.Load()
	require.NoError(t, err)
	got := map[string]string{}
	for _, r := range records {
		got[r.Alloc.ID] = r.Tasks["t"].Intent
	}
	require.Equal(t, map[string]string{"a1": "new", "a2": "late"}, got)
	require.NoError(t, b.Close())
}

func TestMemoryHandsOverToTheNextAgent(t *testing.T) {
	t.Parallel()
	m := NewMemory()
	require.NoError(
		t,
		m.Commit(
			context.Background(), PutAlloc(sampleAlloc("a1")), PutStatus("a1", Status{ClientStatus: "running"}), PutTask("a1", "t", sampleTask()),
		),
	)
	require.NoError(t, m.Close())
	records, err := m.Load()
	require.NoError(t, err)
	require.Empty(
		t,
		cmp.Diff(
			[]Record{{Alloc: sampleAlloc("a1"), Status: Status{ClientStatus: "running"}, Tasks: map[string]Task{"t": sampleTask()}}}, records,
		),
	)
	m.Queue(Drop("a1", "t")...)
	records, err = m.Load()
	require.NoError(t, err)
	require.Empty(t, records)
}

// TestBoltWritesByItselfOnceThereIsRoom: what was queued while the disk was full needs no later change.
func TestBoltWritesByItselfOnceThereIsRoom(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	b, err := OpenBolt(path, slog.New(slog.DiscardHandler), clock.Wall{})
	require.NoError(t, err)
	works, tries, done := b.update, 0, make(chan struct{})
	b.update = func(f func(*bbolt.Tx) error) error {
		if tries++; tries == 1 { // one writer at a time
			return syscall.ENOSPC
		}
		defer close(done)
		return works(f)
	}
	b.Queue(PutAlloc(sampleAlloc("a1")))
	<-done
	records, err := b.Load()
	require.NoError(t, err)
	require.Len(t, records, 1)
	require.NoError(t, b.Close())
}
