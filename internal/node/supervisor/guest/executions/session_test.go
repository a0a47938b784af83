package executions

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/guest/channel"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// TestTheExitComesAfterTheOutput of both streams.
func TestTheExitComesAfterTheOutput(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wire.Boot{WorkDir: "/", Env: map[string]string{"GREETING": "hello", "NOMAD_X": "hidden"}})
	spec := script("e1", `echo "$GREETING $NAME $PWD [$NOMAD_X]"; echo oops >&2; exit 3`)
	spec.Env, spec.WorkDir, spec.HideEnv = map[string]string{"NAME": "you"}, "/tmp", "NOMAD_"
	out, receipt := g.start(t, spec).end(t)
	require.Equal(t, [2]string{"hello you /tmp []\n", "oops\n"}, out)
	require.Equal(t, 3, receipt.ExitCode)
	require.Equal(t, execution.CauseExited, receipt.Cause)
	require.Equal(t, "e1", receipt.ExecutionID)
	require.Equal(t, []int64{18, 5}, []int64{receipt.StdoutBytes, receipt.StderrBytes})
	require.False(t, receipt.Truncated)
	require.Positive(t, receipt.Wall)
	require.Positive(t, receipt.PeakMemory)
}

func TestMuchOutputPassesTheWindow(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wire.Boot{})
	const n = 3_000_000 // more than window, ring and pipe together
	out, receipt := g.start(t, script("e", fmt.Sprintf("yes 0123456 | head -c %d", n))).end(t)
	require.Len(t, out[0], n)
	require.Equal(t, strings.Repeat("0123456\n", n/8), out[0])
	require.Equal(t, int64(n), receipt.StdoutBytes)
}

// TestAProgramWaitsForASlowReader, who gets no more than the window before it acknowledges.
func TestAProgramWaitsForASlowReader(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wire.Boot{})
	r := g.start(t, script("e", "yes | head -c 5000000"))
	for r.pos[0] < wire.Window {
		_, p, err := wire.ParseData(r.Agent.Next(t).Payload)
		require.NoError(t, err)
		r.pos[0] += int64(len(p))
	}
	require.Equal(t, int64(wire.Window), r.pos[0])
	x := r.x
	x.await(t, func() bool { return x.out[0].end-x.out[0].start == ringMax })
	require.Nil(t, x.receipt, "the program waits")
	require.True(t, r.Agent.Quiet())
	r.ack(0)
	_, receipt := r.end(t)
	require.Equal(t, int64(5_000_000), receipt.StdoutBytes)
	require.Equal(t, int64(5_000_000), r.pos[0])
}

func TestStdinReachesTheProgram(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wire.Boot{})
	spec := execution.Spec{ID: "e", Argv: []string{"/bin/cat"}, Stdin: true}
	r := g.start(t, spec)
	r.write("one\n")
	out, _ := r.read(t, "one\n")
	require.Equal(t, "one\n", out[0])
	long := strings.Repeat("x", 200_000) + "\n"
	for rest := long; rest != ""; {
		n := min(len(rest), 50_000)
		r.write(rest[:n])
		rest = rest[n:]
	}
	r.closeStdin()
	out, receipt := r.end(t)
	require.Equal(t, long, out[0])
	require.Zero(t, receipt.ExitCode)

	out, _ = g.start(t, script("none", "cat; echo end")).end(t)
	require.Equal(t, "end\n", out[0], "without stdin there is nothing to wait for")
}

func TestSignalsReachTheProgram(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wire.Boot{})
	r := g.start(t, script("e", `trap 'echo got; exit 9' USR1; echo ready; while :; do sleep 0.01; done`))
	r.read(t, "ready\n")
	r.signal("no signal")
	r.signal("SIGUSR1")
	out, receipt := r.end(t)
	require.Equal(t, "got\n", out[0])
	require.Equal(t, 9, receipt.ExitCode)
	r = g.start(t, script("k", "echo ready; sleep 1000 & wait"))
	r.read(t, "ready\n")
	r.signal("KILL")
	_, receipt = r.end(t)
	require.Equal(t, execution.CauseKilled, receipt.Cause)
	require.Equal(t, 137, receipt.ExitCode)
}

func TestATerminal(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wire.Boot{})
	spec := script("e", `stty -echo; echo $TERM; stty size; echo ready; while read x; do echo "<$x>"; stty size; done; echo end`)
	spec.TTY, spec.Stdin, spec.Size = true, true, execution.WindowSize{Rows: 5, Cols: 50}
	r := g.start(t, spec)
	out, _ := r.read(t, "ready\r\n")
	require.Equal(t, "xterm\r\n5 50\r\nready\r\n", out[0])
	r.write("a\n")
	r.read(t, "<a>\r\n5 50\r\n")
	r.resize(6, 60)
	r.write("b\n")
	r.read(t, "<b>\r\n6 60\r\n")
	r.Frame(wire.Header{Kind: wire.KindResize}, []byte{1}) // is none
	r.closeStdin()                                         // a terminal gets its character for that
	out, receipt := r.end(t)
	require.True(t, strings.HasSuffix(out[0], "end\r\n"), out[0])
	require.Zero(t, receipt.ExitCode)
	require.Empty(t, out[1])
}

// TestACommandThatCannotBeStarted is a receipt, and its id is free again.
func TestACommandThatCannotBeStarted(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wire.Boot{})
	for text, spec := range map[string]execution.Spec{
		"command not found: none-such": {ID: "e", Argv: []string{"none-such"}},
		"no such directory: /none":     {ID: "e", Argv: []string{"/bin/true"}, WorkDir: "/none"},
		"permission denied: /etc":      {ID: "e", Argv: []string{"/etc"}},
	} {
		r := g.reader()
		r.Start(wire.Exec{Spec: spec}, nil)
		_, receipt := r.end(t)
		require.Equal(t, execution.CauseStartFailed, receipt.Cause)
		require.Equal(t, text, receipt.Error)
		require.NotZero(t, receipt.ExitCode)
		require.Equal(t, []uint32{5}, r.Removed())
		r.Gone(false) // finds nothing to leave
	}
	require.Empty(t, g.List())
}

func TestStartsThatAreRefused(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wire.Boot{})
	g.start(t, script("taken", "sleep 1000"))
	refused := func(spec execution.Spec) drover.Code {
		r := g.reader()
		r.Start(wire.Exec{Spec: spec}, nil)
		f := r.Agent.Next(t)
		require.Equal(t, wire.KindError, f.Kind)
		require.Equal(t, []uint32{5}, r.Removed())
		return drover.CodeOf(wire.DecodeError(f.Payload))
	}
	require.Equal(t, drover.Invalid, refused(execution.Spec{Argv: []string{"x"}}))
	require.Equal(t, drover.Invalid, refused(execution.Spec{ID: "e"}))
	require.Equal(t, drover.Invalid, refused(execution.Spec{ID: "e", Argv: []string{""}}))
	require.Equal(t, drover.Conflict, refused(script("taken", "")))
	unknown := script("e", "")
	unknown.User = "nobody-here"
	require.Equal(t, drover.Invalid, refused(unknown))
	require.False(t, g.CloseIfEmpty(), "something runs")
	g.Stop()
	require.Equal(t, drover.Gone, refused(script("e", "")))
	g.Reopen()
	_, receipt := g.start(t, script("e", "")).end(t)
	require.Zero(t, receipt.ExitCode)

	r := g.reader()
	r.Attach("none", execution.Offsets{})
	require.Equal(t, drover.NotFound, drover.CodeOf(wire.DecodeError(r.Agent.Next(t).Payload)))
	r.Gone(true)
}

// TestTwoReaders each get everything, from where they began.
func TestTwoReaders(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wire.Boot{})
	spec := script("e", "echo one; read x; echo ${x}two; exit 4")
	spec.Stdin = true
	first := g.start(t, spec)
	first.read(t, "one\n")
	second := g.attach(t, "e", execution.Offsets{Stdout: 2})
	out, _ := second.read(t, "e\n")
	require.Equal(t, "e\n", out[0], "it had the first two bytes")
	future := g.attach(t, "e", execution.Offsets{Stdout: 1000, Stderr: -5})
	second.write("not this")
	future.write("\n") // stdin is that of who came last
	for _, r := range []*reader{first, second} {
		out, receipt := r.end(t)
		require.Equal(t, "two\n", out[0])
		require.Equal(t, 4, receipt.ExitCode)
	}
	future.pos = [2]int64{4, 0}
	out, _ = future.end(t)
	require.Equal(t, "two\n", out[0], "who asks for more than there is begins at the end")
}

// TestANewAgentGoesOnWhereTheOldOneWas: after a lost connection nothing is missing, and nothing comes twice.
func TestANewAgentGoesOnWhereTheOldOneWas(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wire.Boot{Grace: time.Hour})
	spec := script("e", "echo before; read x; echo after; exit 5")
	spec.Stdin = true
	old := g.start(t, spec)
	old.read(t, "before\n")
	old.Gone(true)
	old.Gone(true) // is heard once
	x := old.x
	x.await(t, func() bool { return len(x.sessions) == 0 })
	later := g.attach(t, "e", execution.Offsets{Stdout: 3})
	later.write("\n")
	out, receipt := later.end(t)
	require.Equal(t, "ore\nafter\n", out[0])
	require.Equal(t, 5, receipt.ExitCode)
	require.Len(t, g.List(), 1, "it is kept until its reader has gone")
	later.Gone(false)
	x.await(t, func() bool { return len(x.sessions) == 0 })
}

func TestABrokenConnectionEndsTheSession(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wire.Boot{})
	r := g.reader()
	r.Break(fmt.Errorf("broken"))
	r.Start(wire.Exec{Spec: script("e", "echo x; sleep 1000")}, nil) // it returns
	require.True(t, r.Agent.Quiet())
	r.Frame(wire.Header{Kind: 200}, nil) // from a newer agent
	require.Len(t, g.List(), 1)
	require.True(t, g.List()[0].Running)
	require.Equal(t, channel.Channel{Agent: r.Agent, ID: 5}, r.Channel)
}
