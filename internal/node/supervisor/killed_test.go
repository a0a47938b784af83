package supervisor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// agentMode makes the test program an agent that starts things, says so, and waits to be killed.
const agentMode = "be-an-agent"

func agent(state string) {
	ctx := context.Background()
	exe, _ := os.Executable()
	c, err := Launch(
		ctx,
		LaunchConfig{Binary: exe, StateDir: state, WorkDir: "/", User: User{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}},
		options(),
	)
	if err == nil {
		_, err = c.StartTask(ctx, TaskSpec{Argv: []string{"sh", "-c", "sleep 1; exit 21"}}, nil)
	}
	var s execution.Session
	if err == nil {
		s, err = c.StartExecution(ctx, execution.Spec{ID: "x", Argv: []string{"sh", "-c", "echo one; sleep 1; echo two; exit 22"}})
	}
	for err == nil {
		var f execution.Frame
		if f, err = s.Next(ctx); len(f.Data) > 0 {
			break
		}
	}
	fmt.Println("ready", err)
	select {}
}

func TestAgentKilledHard(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "state")
	cmd := exec.Command(self(t), agentMode, state)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line := make([]byte, 64)
	n, err := out.Read(line)
	require.NoError(t, err)
	require.Equal(t, "ready <nil>\n", string(line[:n]))
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())

	c, err := Connect(t.Context(), SocketPath(state), options())
	require.NoError(t, err)
	require.Positive(t, c.Pid())
	s, err := c.AttachExecution(t.Context(), "x", execution.Offsets{})
	require.NoError(t, err)
	r := collect(t, s)
	require.Equal(t, "one\ntwo\n", string(r.stdout))
	require.Equal(t, 22, r.receipt.ExitCode)
	exit, err := c.WaitTask(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, 21, exit.Code)
	require.NoError(t, c.Close())
	require.NoError(t, Clean(t.Context(), state, options()))
	require.NoDirExists(t, state)
	require.NoError(t, Clean(t.Context(), state, options()))
	_, err = Connect(t.Context(), SocketPath(state), options())
	require.ErrorIs(t, err, driver.ErrGone)
}

func TestSupervisorKilledHard(t *testing.T) {
	t.Parallel()
	c, _ := launch(t, nil)
	_, err := c.StartTask(t.Context(), TaskSpec{Argv: []string{"sleep", "3"}}, nil)
	require.NoError(t, err)
	s, err := c.StartExecution(t.Context(), sh("sleep 3"))
	require.NoError(t, err)
	require.NoError(t, c.Kill())
	_, err = c.WaitTask(t.Context(), nil)
	require.ErrorIs(t, err, driver.ErrGone)
	for err = nil; err == nil; {
		_, err = s.Next(t.Context())
	}
	require.ErrorIs(t, err, driver.ErrGone)
	require.NoError(t, c.Shutdown(t.Context()))
}

func TestVersionsAreNegotiated(t *testing.T) {
	t.Parallel()
	_, state := launch(t, nil)
	for _, c := range []struct {
		hello  wire.Hello
		chosen uint64
		refuse bool
	}{
		{wire.Hello{Min: 1, Max: 99}, wire.Version, false},
		{wire.Hello{Min: 98, Max: 99}, wire.Version, true},
	} {
		conn, err := dial(SocketPath(state))
		require.NoError(t, err)
		require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
		_, err = conn.Write(wire.Frame(wire.KindHello, 0, 0, append(c.hello.Encode(), "fields of the future"...)))
		require.NoError(t, err)
		r := &frameReader{r: conn}
		_, p, err := r.next()
		require.NoError(t, err)
		h, err := wire.DecodeHello(p)
		require.NoError(t, err)
		require.Equal(t, c.chosen, h.Max)
		require.Equal(t, c.refuse, h.Failure != "")
		if !c.refuse { // what it does not know it refuses, and goes on
			_, err = conn.Write(wire.Frame(wire.KindOpen, 0, 1, []byte{200}))
			require.NoError(t, err)
			head, p, err := r.next()
			require.NoError(t, err)
			require.Equal(t, wire.KindError, head.Kind)
			require.Equal(t, drover.NotImplemented, drover.CodeOf(wire.DecodeError(p)))
		}
		require.NoError(t, conn.Close())
	}
}

func TestOneThatCannotBeReachedEnds(t *testing.T) {
	t.Parallel()
	c, state := launch(t, nil)
	_, err := c.StartTask(t.Context(), TaskSpec{Argv: nap("984.7")}, nil)
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(state))
	require.NoError(t, c.Close())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, c.process.wait(ctx)) // takes lonelyCheck
	require.Empty(t, processesLike(napping("984.7")))
}

// A supervisor that ends before it answers is told of with how it ended, wherever in the start that shows.
func TestOneThatEndsAtOnceSaysHow(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]string{"/bin/false": "exit status 1", "/bin/cat": "exit status 0"} {
		dir := t.TempDir()
		_, err := Launch(t.Context(), LaunchConfig{Binary: program, ID: "x", StateDir: filepath.Join(dir, "state"), WorkDir: dir}, options())
		require.ErrorContains(t, err, "("+want+")")
	}
}
