package raftlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/store"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		crashChild(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// server.raft_multiplier makes all of them as much longer, of a lone server and of several.
func TestPatience(t *testing.T) {
	t.Parallel()
	for _, network := range []Network{nil, struct{ Network }{}} {
		once, thrice := Config{ID: "a", Network: network}, Config{ID: "a", Network: network, Patience: 3}
		require.NoError(t, once.Validate())
		require.NoError(t, thrice.Validate())
		one, three := raftConfig(&once, nil), raftConfig(&thrice, nil)
		require.Equal(t, 3*one.HeartbeatTimeout, three.HeartbeatTimeout)
		require.Equal(t, 3*one.ElectionTimeout, three.ElectionTimeout)
		require.Equal(t, 3*one.LeaderLeaseTimeout, three.LeaderLeaseTimeout)
		require.NoError(t, raft.ValidateConfig(three))
	}
}

func deps() Deps {
	return Deps{FSM: fsm.New(store.New(), nil), Log: slog.New(slog.DiscardHandler), Clock: clock.Wall{}}
}

func start(t testing.TB, cfg Config) (*Log, *fsm.FSM) {
	t.Helper()
	d := deps()
	l, err := Open(cfg, d)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	require.NoError(t, l.WaitLeader(t.Context()))
	return l, d.FSM
}

func register(id string) *command.RegisterJob {
	return &command.RegisterJob{Job: &drover.Job{
		ID: id, Namespace: "default", Type: "batch", TaskGroups: []*drover.TaskGroup{{Name: "g"}},
	}, Time: 1}
}

func TestProposeAnswersWhatTheCommandAnswers(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{"memory": {}, "disk": {DataDir: t.TempDir()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, f := start(t, cfg)
			index, v, err := l.Propose(t.Context(), register("j"))
			require.NoError(t, err)
			require.Equal(t, "j", v.(*drover.Job).ID)
			require.Equal(t, index, f.Store().Index())
			_, _, err = l.Propose(t.Context(), &command.DeregisterJob{Namespace: "default", ID: "x"})
			require.Equal(t, drover.NotFound, drover.CodeOf(err))
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			_, _, err = l.Propose(ended, register("k"))
			require.Equal(t, drover.Canceled, drover.CodeOf(err))
			require.True(t, l.IsLeader())
			require.Equal(t, "Leader", l.Stats().State)
			require.NoError(t, l.Close())
			_, _, err = l.Propose(t.Context(), register("k"))
			require.Equal(t, drover.Unavailable, drover.CodeOf(err))
		})
	}
}

func TestManyCallersAtOnce(t *testing.T) {
	t.Parallel()
	l, f := start(t, Config{DataDir: t.TempDir()})
	var wg sync.WaitGroup
	for c := range 32 {
		wg.Go(func() { // ends after its proposals
			for i := range 20 {
				_, _, err := l.Propose(t.Context(), register(fmt.Sprintf("j%d-%d", c, i)))
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	n := 0
	for range f.Store().Snapshot().Jobs("*", "") {
		n++
	}
	require.Equal(t, 640, n)
}

func TestRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, f := start(t, Config{DataDir: dir, TrailingLogs: 5})
	propose := func(l *Log, from, to int) {
		for i := from; i < to; i++ {
			_, _, err := l.Propose(t.Context(), register(fmt.Sprintf("j%d", i)))
			require.NoError(t, err)
		}
	}
	propose(l, 0, 20)
	require.NoError(t, l.Snapshot())
	require.NoError(t, l.Snapshot(), "nothing new is no error")
	propose(l, 20, 30)
	hash := f.Hash()
	require.NoError(t, l.Close())
	l, f = start(t, Config{DataDir: dir})
	require.Equal(t, hash, f.Hash())
	_, err := Open(Config{DataDir: dir}, deps())
	require.Equal(t, drover.Conflict, drover.CodeOf(err), "a second process: %v", err)
	propose(l, 30, 31)
}

func TestDamagedLogIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := start(t, Config{DataDir: dir})
	const marker = "a-job-id-that-is-easily-found-in-the-file"
	for range 50 {
		_, _, err := l.Propose(t.Context(), register(marker))
		require.NoError(t, err)
	}
	require.NoError(t, l.Close())
	path := filepath.Join(dir, "raft", "raft.db")
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	refused := func(data []byte, why string) {
		t.Helper()
		require.NoError(t, os.WriteFile(path, data, 0o600))
		l, err := Open(Config{DataDir: dir}, deps())
		if err == nil {
			_ = l.Close()
		}
		require.Equal(t, drover.Invalid, drover.CodeOf(err), "%s: %v", why, err)
		t.Logf("%s: %v", why, err)
	}
	flipped := append([]byte{}, good...)
	for i := range len(flipped) - len(marker) {
		if string(flipped[i:i+len(marker)]) == marker {
			flipped[i] = 'X'
		}
	}
	refused(flipped, "flipped bytes")
	refused(good[:16384], "cut file")
	zeroed := append([]byte{}, good...)
	clear(zeroed[4096*4 : len(zeroed)/2])
	refused(zeroed, "zeroed pages")
	refused(make([]byte, len(good)), "all zero")
}

func TestDamagedSnapshotIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := start(t, Config{DataDir: dir, TrailingLogs: 1})
	for i := range 20 {
		_, _, err := l.Propose(t.Context(), register(fmt.Sprint(i)))
		require.NoError(t, err)
	}
	require.NoError(t, l.Snapshot())
	require.NoError(t, l.Close())
	found, err := filepath.Glob(filepath.Join(dir, "raft", "snapshots", "*", "state.bin"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.NoError(t, os.Truncate(found[0], 100))
	_, err = Open(Config{DataDir: dir}, deps())
	require.Equal(t, drover.Invalid, drover.CodeOf(err), "%v", err)
	t.Log(err)
	require.NoError(t, os.RemoveAll(filepath.Dir(found[0])))
	_, err = Open(Config{DataDir: dir}, deps())
	require.ErrorContains(t, err, "no good snapshot reaches up to entry")
}

// faulty is a store whose disk can be full.
type faulty struct {
	*raft.InmemStore
	full atomic.Bool
}

var errNoSpace = errors.New("no space left on device")

func (f *faulty) StoreLogs(l []*raft.Log) error {
	if f.full.Load() {
		return errNoSpace
	}
	return f.InmemStore.StoreLogs(l)
}

func (f *faulty) Set(k, v []byte) error {
	if f.full.Load() {
		return errNoSpace
	}
	return f.InmemStore.Set(k, v)
}

func (f *faulty) SetUint64(k []byte, v uint64) error {
	if f.full.Load() {
		return errNoSpace
	}
	return f.InmemStore.SetUint64(k, v)
}

func TestFullDiskRefusesAndRecovers(t *testing.T) {
	t.Parallel()
	disk := &faulty{InmemStore: raft.NewInmemStore()}
	d := deps()
	l, err := open(Config{}, d, func(_ *Config, h *health, c clock.Clock, _ *logger) (*stores, error) {
		return &stores{
			&checkedLog{disk, h, c}, &patientStable{disk, h, c}, raft.NewInmemSnapshotStore(), func() error { return nil },
		}, nil
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	require.NoError(t, l.WaitLeader(t.Context()))
	_, _, err = l.Propose(t.Context(), register("before"))
	require.NoError(t, err)
	disk.full.Store(true)
	for range 3 {
		_, _, err = l.Propose(t.Context(), register("refused"))
		require.Equal(t, drover.Unavailable, drover.CodeOf(err))
		require.ErrorContains(t, err, "no space left on device")
	}
	require.NotEmpty(t, l.Stats().Sick)
	disk.full.Store(false)
	recovers := func() bool { return l.WaitLeader(t.Context()) == nil } // an entry that was refused can still end the term meanwhile
	require.Eventually(t, recovers, time.Minute, time.Millisecond)
	_, _, err = l.Propose(t.Context(), register("after"))
	require.NoError(t, err)
	s := d.FSM.Store().Snapshot()
	require.NotNil(t, s.Job("default", "before"))
	require.Nil(t, s.Job("default", "refused"))
}

func TestLittleSpaceRefuses(t *testing.T) {
	t.Parallel()
	l, _ := start(t, Config{DataDir: t.TempDir(), MinFree: 1 << 62})
	_, _, err := l.Propose(t.Context(), register("j"))
	require.Equal(t, drover.Exhausted, drover.CodeOf(err))
	require.ErrorContains(t, err, "no space left")
	require.True(t, l.IsLeader(), "reads go on")
}

// That writes are refused is said of those only that were certainly not taken.
func TestRefusalsAreOfWhatWasNotTaken(t *testing.T) {
	t.Parallel()
	l, _ := start(t, Config{MinFree: 1})
	l.health.lose(errors.New("the state is behind"))
	for err, want := range map[error]string{
		errNoSpace: "writes are refused", raft.ErrNotLeader: "writes are refused", raft.ErrLeadershipLost: "may still be applied",
		raft.ErrAbortedByRestore: "may still be applied", context.DeadlineExceeded: "waiting for Barrier to be applied",
	} {
		require.ErrorContains(t, l.proposalError(&command.Barrier{}, err), want, err)
	}
	l.cfg.Network = tcp{}
	require.Equal(t, drover.NotLeader, drover.CodeOf(l.proposalError(&command.Barrier{}, raft.ErrNotLeader)), "another may take it")
}

// TestCloseAnswersEveryCaller: also those whose proposals are in raft's queues when it stops.
func TestCloseAnswersEveryCaller(t *testing.T) {
	t.Parallel()
	l, _ := start(t, Config{DataDir: t.TempDir()})
	const callers = 64
	begun := make(chan struct{}, callers)
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() { // ends when the log is closed
			for i := 0; ; i++ {
				_, _, err := l.Propose(t.Context(), register(fmt.Sprintf("j%d-%d", c, i)))
				if i == 0 {
					begun <- struct{}{}
				}
				if err != nil {
					if drover.CodeOf(err) != drover.Unavailable && drover.CodeOf(err) != drover.NotLeader {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	for range callers {
		<-begun
	}
	require.NoError(t, l.Close())
	wg.Wait()
}

func TestALargeLogIsPutIntoASnapshot(t *testing.T) {
	t.Parallel()
	l, _ := start(t, Config{DataDir: t.TempDir(), SnapshotBytes: 10_000, SnapshotInterval: time.Hour})
	ran := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ran <- l.Run(ctx) }() // ends with ctx
	for i := 0; l.Stats().SnapshotIndex == 0; i++ {
		_, _, err := l.Propose(t.Context(), register(fmt.Sprint(i)))
		require.NoError(t, err)
	}
	cancel()
	require.NoError(t, <-ran)
}

// Who is killed before its log has grown by much cuts it when it comes back. The log of a server that was restarted again and again grew
// until it filled its disk, and then there was no room for a snapshot.
func TestALogThatWasLargeBeforeIsPutIntoASnapshot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := start(t, Config{DataDir: dir, SnapshotInterval: time.Hour})
	for i := range 50 {
		_, _, err := l.Propose(t.Context(), register(fmt.Sprint(i)))
		require.NoError(t, err)
	}
	require.Zero(t, l.Stats().SnapshotIndex)
	require.NoError(t, l.Close())

	l, _ = start(t, Config{DataDir: dir, SnapshotBytes: 1000, SnapshotInterval: time.Hour})
	ran := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ran <- l.Run(ctx) }() // ends with ctx
	require.Eventually(t, func() bool { return l.Stats().SnapshotIndex > 0 }, time.Minute, time.Millisecond)
	cancel()
	require.NoError(t, <-ran)
}

func TestAnAnswerBeforeItsWriteIsReported(t *testing.T) {
	t.Parallel()
	checkStored(register("j"), 7, 7)
	checkStored(register("j"), 7, 9) // others came behind it
	require.PanicsWithValue(t, "invariant 1 (acknowledged writes): RegisterJob: entry 7 is answered, and the state has index 6",
		func() { checkStored(register("j"), 7, 6) })
}
