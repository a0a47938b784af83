package process

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/cgroup"
)

func TestEnvironments(t *testing.T) {
	t.Parallel()
	p, ok := readProc(os.Getpid())
	require.True(t, ok)
	require.True(t, p.settled)
	require.Greater(t, p.threads, 1)
	for text, want := range map[string][]string{"\x00A=b\x00\x00": {"A=b"}, "\x00\x00": {}} {
		program := exec.CommandContext(t.Context(), "cat")
		program.Env = want
		in, err := program.StdinPipe()
		require.NoError(t, err)
		out, err := program.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, program.Start())
		_, err = in.Write([]byte{'x'})
		require.NoError(t, err)
		_, err = out.Read(make([]byte, 1)) // it runs
		require.NoError(t, err)
		env, known := environ(proc{pid: program.Process.Pid, state: 'S'})
		require.True(t, known)
		require.Equal(t, text, string(env))
		require.NoError(t, in.Close())
		require.NoError(t, program.Wait())
	}
	require.True(t, hasMark([]byte("\x00A=b\x00"), "A=b"))
	require.False(t, hasMark([]byte("\x00A=bc\x00"), "A=b"))
}

func TestMembersAreThoseOfNow(t *testing.T) {
	t.Parallel()
	if !cgroup.Probe("/sys/fs/cgroup").Writable {
		require.NotEqual(t, "true", os.Getenv("CI"), "CI makes groups")
		t.Skip("no groups can be made here")
	}
	m, err := cgroup.New(cgroup.Config{Parent: fmt.Sprintf("drover-guest-%d", os.Getpid())})
	require.NoError(t, err)
	g, err := m.Create("task", cgroup.Limits{}, 0)
	require.NoError(t, err)
	defer func() {
		require.NoError(t, g.Remove(t.Context(), clock.Wall{}))
		require.NoError(t, m.Close(clock.Wall{}))
	}()
	child, err := g.Child("members", cgroup.Limits{}, 0) // on v2 one with children takes no process
	require.NoError(t, err)
	members, err := child.OpenJoin(child.Dirs()[0])
	require.NoError(t, err)
	defer members.Close()
	require.Empty(t, readPids(int(members.Fd())))

	program := exec.CommandContext(t.Context(), "sleep", "1000")
	require.NoError(t, program.Start())
	_, err = fmt.Fprint(members, program.Process.Pid)
	require.NoError(t, err)
	require.Equal(t, []int{program.Process.Pid}, readPids(int(members.Fd())))
	require.NoError(t, program.Process.Kill())
	require.Error(t, program.Wait())
	require.Empty(t, readPids(int(members.Fd())))
}
