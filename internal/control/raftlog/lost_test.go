package raftlog

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
)

// unread is the log as an older program sees it: it does not know the kind of the entry that registers the job "unknown".
type unread struct{ raft.LogStore }

func (u unread) GetLog(index uint64, l *raft.Log) error {
	err := u.LogStore.GetLog(index, l)
	if bytes.Contains(l.Data, []byte("unknown")) {
		l.Data = []byte{command.Version, 255}
	}
	return err
}

// older opens the folder with a program that cannot read the entry.
func older(t *testing.T, cfg Config) (*Log, Deps) {
	t.Helper()
	d := deps()
	l, err := open(cfg, d, func(cfg *Config, h *health, c clock.Clock, log *logger) (*stores, error) {
		s, err := openStores(cfg, h, c, log)
		if err == nil {
			s.log = unread{s.log}
		}
		return s, err
	})
	require.NoError(t, err)
	return l, d
}

// TestAnEntryThatCannotBeReadIsKept: a program that does not know an entry stops before it, says so, refuses writes and
// snapshots, and does the same after each restart. A program that knows it finds all of the log. Before, writes were refused
// until the restart only, and the next snapshot dropped the entry.
func TestAnEntryThatCannotBeReadIsKept(t *testing.T) {
	t.Parallel()
	cfg := Config{DataDir: t.TempDir(), TrailingLogs: 1}
	l, f := start(t, cfg)
	before, _, err := l.Propose(t.Context(), register("before"))
	require.NoError(t, err)
	unknown, _, err := l.Propose(t.Context(), register("unknown"))
	require.NoError(t, err)
	for _, id := range []string{"a", "b", "c"} {
		_, _, err = l.Propose(t.Context(), register(id))
		require.NoError(t, err)
	}
	hash := f.Hash()
	require.NoError(t, l.Close())

	for range 2 {
		l, d := older(t, cfg)
		require.NoError(t, l.WaitLeader(t.Context()))
		require.Equal(t, before, d.FSM.Store().Index(), "the state is the one before the entry")
		_, _, err := l.Propose(t.Context(), register("refused"))
		require.Equal(t, drover.Unavailable, drover.CodeOf(err))
		require.ErrorContains(t, err, "the log keeps it for a newer program")
		require.ErrorContains(t, err, "unknown command kind 255")
		require.ErrorContains(t, l.Snapshot(), "no snapshot is written")
		require.Contains(t, l.Stats().Sick, "which this program cannot read")
		require.Equal(t, l.Stats().Sick, l.Progress().Sick)
		require.Equal(t, drover.Unavailable, drover.CodeOf(l.Ready(t.Context())), "its reads are old")
		_, err = l.ReadIndex(t.Context())
		require.Equal(t, drover.Unavailable, drover.CodeOf(err))
		_, err = l.Answer(t.Context(), unknown)
		require.Equal(t, drover.Unavailable, drover.CodeOf(err))
		require.NoError(t, l.Close())
	}

	l, f = start(t, cfg)
	require.Equal(t, hash, f.Hash())
	require.Empty(t, l.Stats().Sick)
	require.NoError(t, l.Snapshot())
	require.NoError(t, l.Ready(t.Context()))
}

// TestOneOfThreeCannotReadAnEntry: it votes and keeps the log, its state waits before the entry, and it refuses what it would
// answer wrongly, also when it is made to lead. With a program that reads the entry it is as the others.
func TestOneOfThreeCannotReadAnEntry(t *testing.T) {
	t.Parallel()
	logs, fsms := cluster(t, 2)
	cfg := Config{ID: "old", Network: network(t), Join: true, DataDir: t.TempDir()}
	old, d := older(t, cfg)
	require.NoError(t, logs[0].AddVoter(t.Context(), "s1", logs[1].Address()))
	require.NoError(t, logs[0].AddVoter(t.Context(), "old", old.Address()))
	before, _, err := logs[0].Propose(t.Context(), register("before"))
	require.NoError(t, err)
	_, _, err = logs[0].Propose(t.Context(), register("unknown"))
	require.NoError(t, err)
	require.NoError(t, logs[1].Close(), "a majority needs it")
	last, _, err := logs[0].Propose(t.Context(), register("behind"))
	require.NoError(t, err)
	awaitIndex(t, []*fsm.FSM{d.FSM}, before)

	require.NoError(t, logs[0].Transfer(t.Context(), "old"))
	require.NoError(t, old.WaitLeader(t.Context()))
	require.Equal(t, before, d.FSM.Store().Index())
	require.Contains(t, old.Progress().Sick, "which this program cannot read")
	_, _, err = old.Propose(t.Context(), register("refused"))
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	require.Error(t, old.Ready(t.Context()))
	require.Error(t, old.Snapshot())
	require.NoError(t, old.Transfer(t.Context(), "s0"))
	require.NoError(t, logs[0].WaitLeader(t.Context()))
	require.NoError(t, old.Close())

	cfg.Network = network(t)
	newer := deps()
	again, err := Open(cfg, newer)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, again.Close()) })
	configured := make(chan error, 1)
	go func() { configured <- logs[0].AddVoter(t.Context(), "old", again.Address()) }() // ends when a majority has it: both
	awaitIndex(t, []*fsm.FSM{newer.FSM}, last)
	require.NoError(t, <-configured)
	require.Equal(t, fsms[0].Hash(), newer.FSM.Hash())
	require.Empty(t, again.Progress().Sick)
}

// TestProposalsAroundAnUnreadEntry: a leader that meets the entry answers those whose commands stand behind it that they are not
// applied.
func TestProposalsAroundAnUnreadEntry(t *testing.T) {
	t.Parallel()
	l, f := start(t, Config{})
	known, err := command.Encode(register("behind"))
	require.NoError(t, err)
	unread, behind := l.raft.Apply([]byte{command.Version, 255}, 0), l.raft.Apply(known, 0)
	for _, future := range []raft.ApplyFuture{unread, behind} {
		require.NoError(t, future.Error(), "the log has it")
		require.True(t, future.Response().(answer).lost)
	}
	require.Nil(t, f.Store().Snapshot().Job("default", "behind"))
	_, _, err = l.Propose(t.Context(), register("later"))
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
}

// TestASnapshotMakesTheStateWhole: a snapshot that another server sends has what the state lacks; one that cannot be read
// changes nothing and is told.
func TestASnapshotMakesTheStateWhole(t *testing.T) {
	t.Parallel()
	l, f := start(t, Config{})
	_, _, err := l.Propose(t.Context(), register("j"))
	require.NoError(t, err)
	var image bytes.Buffer
	require.NoError(t, f.Snapshot(&image))

	d := deps()
	m := &machine{fsm: d.FSM, health: newHealth(), log: d.Log}
	require.True(t, m.Apply(&raft.Log{Index: 1, Data: []byte{command.Version, 255}}).(answer).lost)
	require.Error(t, m.Restore(io.NopCloser(bytes.NewReader(image.Bytes()[:20]))))
	require.ErrorContains(t, m.health.writable(), "cannot read", "the first reason stays")
	require.NoError(t, m.Restore(io.NopCloser(bytes.NewReader(image.Bytes()))))
	require.NoError(t, m.health.writable())
	require.NotNil(t, d.FSM.Store().Snapshot().Job("default", "j"))
	require.Error(t, m.Restore(io.NopCloser(bytes.NewReader(nil))))
	require.ErrorContains(t, m.health.writable(), "lacks what a snapshot has")
}

// TestTheVersionGatesCommands: what not all servers of a cluster read is refused with what to do, also in a batch. A server that
// nobody can join writes what its program has.
func TestTheVersionGatesCommands(t *testing.T) {
	t.Parallel()
	logs, _ := cluster(t, 1)
	require.Equal(t, 1, logs[0].Version())
	require.NoError(t, logs[0].allowed(&command.Batch{Commands: []command.Command{register("j")}}))
	for kind := range command.Kind(255) {
		if kind.Since() == command.Oldest || kind == command.KindRaiseVersion {
			continue
		}
		err := logs[0].allowed(&command.Batch{Commands: []command.Command{register("j"), of{kind}}})
		require.Equal(t, drover.NotImplemented, drover.CodeOf(err))
		require.ErrorContains(t, logs[0].allowed(of{kind}),
			fmt.Sprintf("needs cluster version %d, and this cluster writes version 1 until each", kind.Since()))
	}
	_, _, err := logs[0].Propose(t.Context(), &command.RaiseVersion{Version: command.Newest})
	require.NoError(t, err)
	require.Equal(t, command.Newest, logs[0].Version())
	require.NoError(t, logs[0].allowed(of{command.KindRaiseVersion + 1}))

	alone, _ := start(t, Config{})
	require.Equal(t, command.Newest, alone.Version())
}

// of is a command of a kind.
type of struct{ kind command.Kind }

func (c of) Kind() command.Kind { return c.kind }
