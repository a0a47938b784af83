package spawn

import (
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func run(t testing.TB, s Spec) (string, syscall.WaitStatus) {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	null, err := os.Open("/dev/null")
	require.NoError(t, err)
	defer null.Close()
	s.Files = []int{int(null.Fd()), int(w.Fd()), int(w.Fd())}
	pid, err := Start(s)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	out, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	var ws syscall.WaitStatus
	_, err = syscall.Wait4(pid, &ws, 0, nil)
	require.NoError(t, err)
	return string(out), ws
}

func TestStartRunsInDirWithEnvAndLimits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, ws := run(t, Spec{
		Path: "/bin/sh", Argv: []string{"sh", "-c", `pwd; echo "$A"; ulimit -n; ulimit -Hn; exit 7`}, Env: []string{"A=b c"}, Dir: dir,
		Rlimits: []Rlimit{{Resource: syscall.RLIMIT_NOFILE, Cur: 64, Max: 128}},
	})
	require.Equal(t, dir+"\nb c\n64\n128\n", out)
	require.Equal(t, 7, ws.ExitStatus())
}

func TestFailureNamesItsStep(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec  Spec
		step  Step
		errno syscall.Errno
	}{
		"program": {Spec{Path: "/no/such", Argv: []string{"x"}}, StepExec, syscall.ENOENT},
		"dir":     {Spec{Path: "/bin/true", Argv: []string{"x"}, Dir: "/no/such"}, StepDir, syscall.ENOENT},
		"mode":    {Spec{Path: "/etc/passwd", Argv: []string{"x"}}, StepExec, syscall.EACCES},
		"group":   {Spec{Path: "/bin/true", Argv: []string{"x"}, Join: []int{9999}}, StepJoin, syscall.EBADF},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Start(c.spec)
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.step, e.Step)
			require.Equal(t, c.errno, e.Errno)
		})
	}
}

func TestUser(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 { // nothing to change to
		_, err := Start(Spec{Path: "/bin/true", Argv: []string{"true"}, User: &User{UID: 0}})
		require.Error(t, err)
		return
	}
	out, _ := run(
		t,
		Spec{
			Path: "/bin/sh",
			Argv: []string{"sh", "-c", "id -u; id -g; id -G"},
			Env:  []string{"PATH=/bin:/usr/bin"},
			Dir:  "/",
			User: &User{UID: 1234, GID: 77, Groups: []uint32{77, 88}},
		},
	)
	require.Equal(t, "1234\n77\n77 88\n", out)
}

// TestCapabilitiesOfAUser: those that are asked for and no others, for what the program starts, too; root's are left alone.
func TestCapabilitiesOfAUser(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root has capabilities to give")
	}
	of := func(uid uint32, ambient, drop uint64) string {
		out, _ := run(t, Spec{
			Path: "/bin/sh", Argv: []string{"sh", "-c", "/bin/grep -E 'CapInh|CapPrm|CapEff|CapAmb' /proc/self/status; true"}, Dir: "/",
			User: &User{UID: uid, GID: 77}, Ambient: ambient, Drop: drop,
		})
		return out
	}
	const bind, chown = 1 << 10, 1 << 0
	all := func(n string) string {
		return "CapInh:\t" + n + "\nCapPrm:\t" + n + "\nCapEff:\t" + n + "\nCapAmb:\t" + n + "\n"
	}
	require.Equal(t, all("0000000000000401"), of(1234, bind|chown, 0))
	require.Equal(t, all("0000000000000400"), of(1234, bind|chown, chown), "what nobody gets")
	require.Equal(t, all("0000000000000000"), of(1234, 0, 0))
	require.Contains(t, of(0, bind, 0), "CapAmb:\t0000000000000000\n")
}

func TestManyAtOnceWithSignals(t *testing.T) {
	t.Parallel()
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGCHLD)
	defer signal.Stop(ch)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() { // ends after its starts
			for range 20 {
				out, ws := run(t, Spec{Path: "/bin/echo", Argv: []string{"echo", "hi"}})
				if out != "hi\n" || ws != 0 {
					t.Errorf("got %q, %v", out, ws)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkTrue(b *testing.B) {
	null, err := os.Open("/dev/null")
	require.NoError(b, err)
	fd := int(null.Fd())
	for b.Loop() {
		pid, err := Start(Spec{Path: "/bin/true", Argv: []string{"true"}, Files: []int{fd, fd, fd}})
		require.NoError(b, err)
		_, err = syscall.Wait4(pid, nil, 0, nil)
		require.NoError(b, err)
	}
}

// TestBornInGroup needs a v2 hierarchy, also one without controllers.
func TestBornInGroup(t *testing.T) {
	t.Parallel()
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		dir := root + "/drover-spawn-test"
		if _, err := os.Stat(root + "/cgroup.procs"); err != nil || os.Mkdir(dir, 0o755) != nil {
			continue
		}
		f, err := os.Open(dir)
		require.NoError(t, err)
		out, _ := run(t, Spec{Path: "/bin/cat", Argv: []string{"cat", "/proc/self/cgroup"}, Cgroup: int(f.Fd())})
		require.NoError(t, f.Close())
		require.NoError(t, os.Remove(dir))
		require.Contains(t, out, "0::/drover-spawn-test")
		return
	}
	t.Log("this machine has no v2 hierarchy that we may use")
}
