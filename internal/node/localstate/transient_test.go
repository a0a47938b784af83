package localstate

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/appendlog"
	"github.com/drover-project/drover/internal/clock"
)

func sampleRunner(id string) *drover.Allocation {
	a := sampleAlloc(id)
	a.Job.TaskGroups[0].Pool = &drover.WarmPool{Size: 3}
	return a
}

func open(t *testing.T, path string) *Bolt {
	t.Helper()
	b, err := OpenBolt(path, slog.New(slog.DiscardHandler), clock.Wall{})
	require.NoError(t, err)
	return b
}

func keysOf(t *testing.T, b *Bolt) (keys []string) {
	t.Helper()
	require.NoError(t, b.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketName).ForEach(func(k, _ []byte) error { keys = append(keys, string(k)); return nil })
	}))
	return keys
}

func TestRunnersAreKeptWithoutTransactions(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	b := open(t, path)
	ctx := context.Background()
	require.NoError(t, b.Commit(ctx, PutAlloc(sampleRunner("r1")), PutTask("r1", "t", Task{}), PutAlloc(sampleAlloc("a1"))))
	b.Queue(PutTask("r1", "t", sampleTask()))
	b.Queue(PutStatus("r1", Status{ClientStatus: "running"}))
	require.NoError(t, b.Settle(ctx, "r1"))
	require.NoError(t, b.Commit(ctx, PutAlloc(sampleRunner("r2")), PutTask("r2", "t", Task{})))
	b.Queue(Drop("r2", "t")...)
	require.NoError(t, b.pools.flush())
	for _, key := range keysOf(t, b) {
		require.NotContains(t, key, "r1")
	}
	want := []Record{
		{Alloc: sampleAlloc("a1"), Tasks: map[string]Task{}},
		{Alloc: sampleRunner("r1"), Status: Status{ClientStatus: "running"}, Tasks: map[string]Task{"t": sampleTask()}},
	}
	sorted := cmpopts.SortSlices(func(a, b Record) bool { return a.Alloc.ID < b.Alloc.ID })
	// Not closed: as after kill -9 of the process.
	_, entries, err := openTransient(poolsPath(path), b.pools.boot)
	require.NoError(t, err)
	records, err := newJobs(newFormat()).assemble(entries)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(want[1:], records))
	require.NoError(t, b.Close())
	require.ErrorIs(t, b.Commit(ctx, PutTask("r1", "t", Task{})), os.ErrClosed)

	b = open(t, path)
	records, err = b.Load()
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(want, records, sorted))
	b.Queue(Drop("r1", "t")...)
	b.Queue(Drop("a1")...)
	require.NoError(t, b.Close())
	b = open(t, path)
	records, err = b.Load()
	require.NoError(t, err)
	require.Empty(t, records)
	require.Empty(t, keysOf(t, b))
	require.Len(t, b.pools.index, 1, "the boot id")
	require.NoError(t, b.Close())
}

// poolsPath is where the pools' records are, beside the bbolt file.
func poolsPath(path string) string { return filepath.Join(filepath.Dir(path), "runners.log") }

func TestRunnersOfAnOlderAgentStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	b := open(t, path)
	require.NoError(t, b.commit(context.Background(), []Change{PutAlloc(sampleRunner("r1")), PutTask("r1", "t", Task{})}))
	require.NoError(t, b.Close())
	b = open(t, path)
	_, err := b.Load()
	require.NoError(t, err)
	require.NoError(t, b.Commit(context.Background(), PutAlloc(sampleRunner("r1"))))
	require.NoError(t, b.Commit(context.Background(), PutTask("r1", "t", sampleTask())))
	require.Len(t, b.pools.index, 1)
	require.NoError(t, b.Close())
	b = open(t, path)
	records, err := b.Load()
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]Record{{Alloc: sampleRunner("r1"), Tasks: map[string]Task{"t": sampleTask()}}}, records))
	require.NoError(t, b.Commit(context.Background(), Drop("r1", "t")...))
	require.Empty(t, keysOf(t, b))
	require.NoError(t, b.Close())
}

func TestRunnersEndWithTheMachine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runners.log")
	p, _, err := openTransient(path, "boot 1")
	require.NoError(t, err)
	require.NoError(t, p.add([]Change{PutAlloc(sampleRunner("r1"))}))
	require.NoError(t, p.close())
	p, entries, err := openTransient(path, "boot 2")
	require.NoError(t, err)
	require.Empty(t, entries)
	require.False(t, p.has("r1"))
	require.NoError(t, p.close())
}

func TestTornRecordsAreDropped(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runners.log")
	p, _, err := openTransient(path, "b")
	require.NoError(t, err)
	require.NoError(t, p.add([]Change{PutAlloc(sampleRunner("r1"))}))
	whole := p.file.Size()
	require.NoError(t, p.add([]Change{PutTask("r1", "t", sampleTask())}))
	require.NoError(t, p.close())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for cut := whole; cut < int64(len(text)); cut++ {
		torn := append([]byte(nil), text[:cut]...)
		if cut > whole+12 {
			torn = append([]byte(nil), text...)
			torn[cut] ^= 1 // or damaged
		}
		require.NoError(t, os.WriteFile(path, torn, 0o600))
		p, entries, err := openTransient(path, "b")
		require.NoError(t, err)
		require.Len(t, entries, 2, "the allocation and its job")
		require.Equal(t, whole, p.file.Size())
		require.NoError(t, p.close())
	}
}

func TestTheRunnersFileStaysSmall(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runners.log")
	p, _, err := openTransient(path, "b")
	require.NoError(t, err)
	alloc := sampleRunner("keep")
	require.NoError(t, p.add([]Change{PutAlloc(alloc), PutTask("keep", "t", sampleTask())}))
	most := int64(0)
	for i := range 5_000 {
		r := *alloc
		r.ID = fmt.Sprint("r", i)
		require.NoError(t, p.add([]Change{PutAlloc(&r), PutTask(r.ID, "t", sampleTask())}))
		require.NoError(t, p.add(Drop(r.ID, "t")))
		most = max(most, p.file.Size())
	}
	require.Less(t, most, int64(transientLeast+1<<16))
	require.NoError(t, p.close())
	p, entries, err := openTransient(path, "b")
	require.NoError(t, err)
	records, err := p.jobs.assemble(entries)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]Record{{Alloc: sampleRunner("keep"), Tasks: map[string]Task{"t": sampleTask()}}}, records))
	require.NoError(t, p.close())
}

func TestWhatWasNotWrittenOfARunnerIsWrittenLater(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	synctest.Test(t, func(t *testing.T) {
		b := open(t, path)
		writable := b.pools.file
		gone, err := appendlog.Open(poolsPath(path), appendlog.Frames)
		require.NoError(t, err)
		require.NoError(t, gone.Close())
		b.pools.file = gone
		require.Error(t, b.Commit(t.Context(), PutAlloc(sampleRunner("r1"))))
		b.Queue(PutTask("r1", "t", sampleTask()))
		require.Error(t, b.Settle(t.Context(), "r1"))
		b.pools.mu.Lock()
		b.pools.file = writable
		b.pools.mu.Unlock()
		clock.Sleep(t.Context(), clock.Wall{}, 2*retryAfter)
		_, entries, err := openTransient(poolsPath(path), b.pools.boot)
		require.NoError(t, err)
		require.Len(t, entries, 3)
		require.NoError(t, b.Close())
	})
}

func TestWhatIsOutdatedOfARunnerIsNotWritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	synctest.Test(t, func(t *testing.T) {
		b := open(t, path)
		ctx := t.Context()
		size := func() int64 {
			b.pools.mu.Lock()
			defer b.pools.mu.Unlock()
			return b.pools.file.Size()
		}
		require.NoError(t, b.Commit(ctx, PutAlloc(sampleRunner("r1")), PutAlloc(sampleRunner("r2"))))
		before := size()
		b.Queue(PutTask("r1", "t", sampleTask()))
		b.Queue(PutTask("r2", "t", sampleTask()))
		require.Equal(t, before, size())
		require.NoError(t, b.Settle(ctx, "r1"))
		one := size() - before
		require.Positive(t, one, "only r1's")
		for range 5 {
			b.Queue(PutTask("r1", "t", sampleTask()))
			b.Queue(PutTask("r2", "t", sampleTask()))
		}
		clock.Sleep(ctx, clock.Wall{}, 2*queuePace)
		require.Equal(t, before+3*one, size(), "one more of each")
		b.Queue(PutAlloc(sampleRunner("r3")), PutTask("r3", "t", sampleTask()))
		b.Queue(Drop("r3", "t")...)
		clock.Sleep(ctx, clock.Wall{}, 2*queuePace)
		require.Equal(t, before+3*one, size(), "nobody has to forget what was never written")
		require.NoError(t, b.Close())
	})
}
