package localstate

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"drover"
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

func TestBoltKeepsRecordsOverReopening(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "client", "state.db")
	b, err := OpenBolt(path, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	ctx := context.Background()
	require.NoError(t, b.Commit(ctx, PutAlloc(sampleAlloc("a1")), PutStatus("a1", Status{ClientStatus: "running"}), PutTask("a1", "t", sampleTask())))
	require.NoError(t, b.Commit(ctx, PutAlloc(sampleAlloc("a2")), PutTask("a2", "t", sampleTask())))
	b.Queue(Drop("a2", "t")...)
	_, err = OpenBolt(path, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "does another agent run?")
	require.NoError(t, b.Close())
	require.Error(t, b.Commit(ctx, PutAlloc(sampleAlloc("a3"))))

	b, err = OpenBolt(path, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	records, err := b.Load()
	require.NoError(t, err)
	want := []Record{{Alloc: sampleAlloc("a1"), Status: Status{ClientStatus: "running"}, Tasks: map[string]Task{"t": sampleTask()}}}
	require.Empty(t, cmp.Diff(want, records))
	require.NoError(t, b.Close())
}

func TestBoltSharesWrites(t *testing.T) {
	t.Parallel()
	b, err := OpenBolt(filepath.Join(t.TempDir(), "state.db"), slog.New(slog.DiscardHandler))
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

// TestBoltDiskFull: the change is refused with the reason, what runs goes on, and nothing is lost once there is room.
func TestBoltDiskFull(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	b, err := OpenBolt(path, slog.New(slog.DiscardHandler))
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
	b, err = OpenBolt(path, slog.New(slog.DiscardHandler))
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
	require.NoError(t, m.Commit(context.Background(), PutAlloc(sampleAlloc("a1")), PutStatus("a1", Status{ClientStatus: "running"}), PutTask("a1", "t", sampleTask())))
	require.NoError(t, m.Close())
	records, err := m.Load()
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]Record{{Alloc: sampleAlloc("a1"), Status: Status{ClientStatus: "running"}, Tasks: map[string]Task{"t": sampleTask()}}}, records))
	m.Queue(Drop("a1", "t")...)
	records, err = m.Load()
	require.NoError(t, err)
	require.Empty(t, records)
}
