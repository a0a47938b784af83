package executions

import (
	"fmt"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/guest/guesttest"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// forgotten waits until an execution is not kept any more.
func (g *guest) forgotten(t *testing.T, id string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := g.find(id)
		return err != nil
	}, guesttest.Patience, time.Millisecond)
}

// TestTheLastReaderDecides: an execution that nobody reads any more ends, or runs on as its specification says.
func TestTheLastReaderDecides(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wire.Boot{Grace: time.Hour})
	ends := g.start(t, script("ends", "echo ready; sleep 1000"))
	ends.read(t, "ready\n")
	x := ends.x
	ends.Gone(false)
	x.await(t, func() bool { return x.receipt != nil })
	require.Equal(t, execution.CauseKilled, x.receipt.Cause)

	spec := script("stays", "echo ready; read x; echo done")
	spec.Detach, spec.Stdin = time.Hour, true
	stays := g.start(t, spec)
	stays.read(t, "ready\n")
	stays.Gone(false)
	stays.x.await(t, func() bool { return len(stays.x.sessions) == 0 && stays.x.leaving != nil })
	again := g.attach(t, "stays", execution.Offsets{Stdout: 6})
	again.write("\n")
	out, receipt := again.end(t)
	require.Equal(t, "done\n", out[0])
	require.Equal(t, execution.CauseExited, receipt.Cause)

	spec = script("short", "sleep 1000")
	spec.Detach = time.Millisecond
	short := g.start(t, spec)
	short.Gone(false)
	short.x.await(t, func() bool { return short.x.receipt != nil })
	require.Equal(t, execution.CauseKilled, short.x.receipt.Cause, "nobody came back in time")
}

// TestAnEndThatWasReadIsForgotten; one whose reader was lost is kept for who comes back.
func TestAnEndThatWasReadIsForgotten(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wire.Boot{})
	read := g.start(t, script("read", "echo x"))
	read.end(t)
	read.Gone(false)
	g.forgotten(t, "read")

	lost := g.start(t, script("lost", "echo x; exit 2"))
	lost.end(t)
	lost.Gone(true)
	lost.x.await(t, func() bool { return len(lost.x.sessions) == 0 })
	out, receipt := g.attach(t, "lost", execution.Offsets{}).end(t)
	require.Equal(t, "x\n", out[0])
	require.Equal(t, 2, receipt.ExitCode)
	list := g.List()
	require.Len(t, list, 1)
	require.False(t, list[0].Running)
	require.Equal(t, 2, list[0].Receipt.ExitCode)
}

// The receipt was on its way when its reader went: it is the next reader's, who is not told that another has it.
func TestAnEndThatWasSentButNotTakenIsKept(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wire.Boot{})
	spec := script("untaken", "echo x; exit 2")
	spec.Keep = time.Minute
	went := g.start(t, spec)
	went.end(t)
	went.Untaken()
	went.Gone(false)
	went.x.await(t, func() bool { return len(went.x.sessions) == 0 && went.x.leaving != nil })
	list := g.List()
	require.Len(t, list, 1)
	require.False(t, list[0].Taken)
	next := g.attach(t, "untaken", execution.Offsets{})
	_, receipt := next.end(t)
	require.Equal(t, 2, receipt.ExitCode)
	next.Gone(false)
	require.Eventually(t, func() bool { return g.List()[0].Taken }, time.Minute, time.Millisecond)
}

// TestEndsThatNobodyReadsAreBounded: the oldest give way.
func TestEndsThatNobodyReadsAreBounded(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wire.Boot{})
	for i := range maxFinished + 3 {
		r := g.start(t, script(fmt.Sprint(i), ""))
		r.end(t)
		r.Gone(true)
		<-g.finished
	}
	require.Len(t, g.List(), maxFinished)
	_, err := g.find("2")
	require.Error(t, err)
	_, err = g.find("3")
	require.NoError(t, err)
	require.False(t, g.Busy())
}

// TestOutputIsKeptAfterItWasRead: who read the end may be gone before others had the output. The newest is kept, in little memory, and
// for as long as was asked for; it keeps no supervisor from serving another task.
func TestOutputIsKeptAfterItWasRead(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wire.Boot{})
	run := func(id, text string, keep time.Duration) {
		t.Helper()
		spec := script(id, text)
		spec.Keep = keep
		s := g.start(t, spec)
		s.end(t)
		s.Gone(false)
		require.Eventually(t, func() bool { return g.kept(s.x) || keep < time.Second }, guesttest.Patience, time.Millisecond)
	}
	run("first", "echo one; echo two >&2; exit 3", time.Hour)
	for range 2 { // as often as somebody asks
		again := g.attach(t, "first", execution.Offsets{Stdout: 1})
		out, receipt := again.end(t)
		require.Equal(t, [2]string{"ne\n", "two\n"}, out)
		require.Equal(t, 3, receipt.ExitCode)
		again.Gone(false)
		again.x.await(t, func() bool { return len(again.x.sessions) == 0 })
	}
	require.LessOrEqual(t, g.size("first"), 16)
	require.True(t, g.List()[0].Taken)
	require.False(t, g.Busy())

	big := fmt.Sprintf("head -c %d /dev/zero; head -c %d /dev/zero >&2", 1<<20, 1<<20)
	run("second", big, time.Hour) // all that may be kept
	g.forgotten(t, "first")
	run("third", "echo x", time.Hour)
	g.forgotten(t, "second")
	require.True(t, g.CloseIfEmpty())
	g.forgotten(t, "third")
	g.Reopen()

	run("short", "echo x", time.Millisecond)
	g.forgotten(t, "short")
	for i := range maxTaken + 1 {
		run(strconv.Itoa(i), "echo x", time.Hour)
	}
	g.forgotten(t, "0")
	_, err := g.find("1")
	require.NoError(t, err)
}

// kept reports whether the output is kept of an execution whose end was read.
func (g *guest) kept(x *command) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Contains(g.taken, x)
}

// size is how much memory the output of an execution takes whose end was read.
func (g *guest) size(id string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.byID[id].size
}

// TestWhatACommandLeavesBehindEnds with it, unless its tree is to be kept.
func TestWhatACommandLeavesBehindEnds(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wire.Boot{})
	left := func(keep bool) (pids [2]int) {
		spec := script(fmt.Sprint("e", keep), `sleep 1000 >/dev/null 2>&1 & setsid sh -c 'echo $$ '$!'; exec sleep 1000' & read x`)
		spec.Stdin, spec.KeepTree = true, keep
		r := g.start(t, spec)
		out, _ := r.read(t, "\n")
		_, err := fmt.Sscan(out[0], &pids[0], &pids[1])
		require.NoError(t, err)
		r.closeStdin()
		_, receipt := r.end(t)
		require.Equal(t, execution.CauseExited, receipt.Cause)
		return pids
	}
	for _, pid := range left(false) {
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
	}
	for _, pid := range left(true) {
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL), "it goes on")
	}
}

// TestTheEndOfTheRunnerIsTold to those who still read.
func TestTheEndOfTheRunnerIsTold(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wire.Boot{})
	r := g.start(t, script("e", "echo ready; sleep 1000"))
	r.read(t, "ready\n")
	g.Stop()
	g.launcher.Reaper.Signal(r.x.child, syscall.SIGKILL) // as the server kills all
	_, receipt := r.end(t)
	require.Equal(t, execution.CauseRunnerGone, receipt.Cause)
	require.False(t, g.CloseIfEmpty(), "its receipt may be asked for")
	r.Gone(false)
	g.forgotten(t, "e")
	require.True(t, g.CloseIfEmpty())
}
