package raftlog

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/store"
)

// parts is a restore of the machine's state in two entries.
func parts(t *testing.T, f *fsm.FSM) (first, last *command.RestoreState) {
	t.Helper()
	var data bytes.Buffer
	zip := gzip.NewWriter(&data)
	require.NoError(t, f.Snapshot(zip))
	require.NoError(t, zip.Close())
	half := data.Len() / 2
	return &command.RestoreState{ID: "r", Data: data.Bytes()[:half]},
		&command.RestoreState{ID: "r", Part: 1, Data: data.Bytes()[half:], Last: true, Epoch: "1"}
}

// longer is a state of another log, whose indexes are greater.
func longer(t *testing.T) *fsm.FSM {
	f := fsm.New(store.New(), nil)
	data, err := command.Encode(register("archived"))
	require.NoError(t, err)
	_, err = f.Apply(5000, data)
	require.NoError(t, err)
	return f
}

func TestAllServersReplaceTheirStateAtOneEntry(t *testing.T) {
	t.Parallel()
	logs, fsms := cluster(t, 3)
	leader := logs[0]
	for _, l := range logs[1:] {
		require.NoError(t, leader.AddVoter(t.Context(), l.cfg.ID, l.Address()))
	}
	_, _, err := leader.Propose(t.Context(), &command.RaiseVersion{Version: command.Newest})
	require.NoError(t, err)
	_, _, err = leader.Propose(t.Context(), register("before"))
	require.NoError(t, err)
	first, last := parts(t, longer(t))
	_, _, err = leader.Propose(t.Context(), first)
	require.NoError(t, err)
	require.Error(t, leader.Snapshot(), "a snapshot would not have the part")
	index, _, err := leader.Propose(t.Context(), last)
	require.NoError(t, err)
	require.Greater(t, index, uint64(5000))
	require.Equal(t, index, fsms[0].Store().Index())

	next, _, err := leader.Propose(t.Context(), register("after"))
	require.NoError(t, err)
	require.Equal(t, index+1, next, "the state's index goes on")
	read, err := leader.ReadIndex(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, read, next)
	v, err := logs[1].Answer(t.Context(), next)
	require.NoError(t, err)
	require.Equal(t, "after", v.(*drover.Job).ID)
	awaitIndex(t, fsms, next)
	for _, f := range fsms {
		require.Nil(t, f.Store().Snapshot().Job("default", "before"))
		require.NotNil(t, f.Store().Snapshot().Job("default", "archived"))
		require.Equal(t, fsms[0].Hash(), f.Hash())
	}

	// A server that starts again has the same state, from its log and from a snapshot.
	for _, snapshot := range []bool{false, true} {
		if snapshot {
			require.NoError(t, logs[2].Snapshot())
		}
		require.NoError(t, logs[2].Close())
		d := deps()
		cfg := logs[2].cfg
		cfg.Network, cfg.Join = network(t), true
		logs[2], err = Open(cfg, d)
		require.NoError(t, err)
		require.NoError(t, leader.AddVoter(t.Context(), cfg.ID, logs[2].Address()))
		next, _, err = leader.Propose(t.Context(), register(fmt.Sprint("again ", snapshot)))
		require.NoError(t, err)
		awaitIndex(t, []*fsm.FSM{d.FSM}, next)
		require.Equal(t, fsms[0].Hash(), d.FSM.Hash())
	}
	require.NoError(t, logs[2].Close())
}

// The leader is killed between two parts: the next one begins its term with an entry that ends the restore.
func TestARestoreEndsWithItsLeader(t *testing.T) {
	t.Parallel()
	logs, fsms := cluster(t, 3)
	for _, l := range logs[1:] {
		require.NoError(t, logs[0].AddVoter(t.Context(), l.cfg.ID, l.Address()))
	}
	_, _, err := logs[0].Propose(t.Context(), &command.RaiseVersion{Version: command.Newest})
	require.NoError(t, err)
	_, _, err = logs[0].Propose(t.Context(), register("before"))
	require.NoError(t, err)
	first, last := parts(t, longer(t))
	_, _, err = logs[0].Propose(t.Context(), first)
	require.NoError(t, err)
	require.NoError(t, logs[0].Close())

	ctx, cancel := context.WithCancel(t.Context())
	led := make(chan *Log, 2)
	var all sync.WaitGroup
	for _, l := range logs[1:] {
		all.Go(func() { // ends with ctx
			l.Follow(ctx, func(term context.Context) {
				if _, _, err := l.Propose(term, &command.Barrier{}); err == nil { // as leader.Leader begins
					led <- l
				}
				<-term.Done()
			})
		})
	}
	next := <-led
	_, _, err = next.Propose(t.Context(), last)
	require.Equal(t, drover.Conflict, drover.CodeOf(err))
	index, _, err := next.Propose(t.Context(), register("after"))
	require.NoError(t, err)
	awaitIndex(t, fsms[1:], index)
	require.Equal(t, fsms[1].Hash(), fsms[2].Hash())
	require.NotNil(t, fsms[1].Store().Snapshot().Job("default", "before"))
	require.NoError(t, next.Snapshot())
	cancel()
	all.Wait()
}

func TestNothingLeadsWhileTheLogIsHeld(t *testing.T) {
	t.Parallel()
	l, _ := start(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	began, ended, finish := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() { // ends with ctx
		l.Follow(ctx, func(term context.Context) {
			began <- struct{}{}
			<-term.Done()
			<-finish
			ended <- struct{}{}
		})
	})
	<-began
	held := make(chan func(), 1)
	all.Go(func() { // ends when the term has
		release, err := l.Hold(t.Context())
		if err == nil {
			held <- release
		}
	})
	finish <- struct{}{}
	require.Empty(t, held, "the term is still ending")
	<-ended
	release := <-held
	_, err := l.Hold(t.Context())
	require.Equal(t, drover.Conflict, drover.CodeOf(err))
	_, _, err = l.Propose(t.Context(), register("meanwhile"))
	require.NoError(t, err)
	select {
	case <-began:
		t.Fatal("a term begins while the log is held")
	default:
	}
	release()
	<-began

	late, stop := context.WithCancel(t.Context())
	stop()
	_, err = l.Hold(late)
	require.Equal(t, drover.Canceled, drover.CodeOf(err))
	cancel()
	finish <- struct{}{}
	<-ended
	all.Wait()
}
