package process

import (
	"fmt"
	"os"
	"syscall"
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
		p := startWith(t, true, want, "/bin/cat")
		_, err := p.in.Write([]byte{'x'})
		require.NoError(t, err)
		_, err = p.out.ReadByte() // it runs
		require.NoError(t, err)
		env, known := environ(proc{pid: p.Pid, state: 'S'})
		require.True(t, known)
		require.Equal(t, text, string(env))
		require.NoError(t, p.in.Close())
		p.wait(t)
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

	p := start(t, true, nil, "/bin/sleep", "1000")
	_, err = fmt.Fprint(members, p.Pid)
	require.NoError(t, err)
	require.Equal(t, []int{p.Pid}, readPids(int(members.Fd())))
	require.True(t, reaping.Signal(p.Child, syscall.SIGKILL))
	p.wait(t)
	require.Empty(t, readPids(int(members.Fd())))
}
