package spawn

import (
	"io"
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// stage starts a staged child of /bin/sh, as an unprivileged user may too, whose output goes into the pipe.
func stage(t *testing.T) (child *Staged, out *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Close() })
	defer w.Close()
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	shell, err := os.Open("/bin/sh")
	require.NoError(t, err)
	defer shell.Close()
	child, err = StartStaged(Stage{
		Files: []int{int(null.Fd()), int(w.Fd()), int(w.Fd())}, Program: int(shell.Fd()),
		Namespaces: unix.CLONE_NEWUSER | unix.CLONE_NEWPID, Unshare: unix.CLONE_NEWUTS,
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("/proc/"+strconv.Itoa(child.Pid)+"/uid_map", []byte("0 "+strconv.Itoa(os.Getuid())+" 1"), 0))
	return child, r
}

// shell executes the shell with a command.
func (s *Script) shell(t *testing.T, command string) {
	t.Helper()
	argv, err := syscall.SlicePtrFromStrings([]string{"sh", "-c", command})
	require.NoError(t, err)
	env, err := syscall.SlicePtrFromStrings([]string{"PATH=/bin:/usr/bin"})
	require.NoError(t, err)
	s.Call("executing", unix.SYS_EXECVEAT, Num(ProgramFD), s.Str(""), Pointer(s, &argv[0]), Pointer(s, &env[0]), Num(unix.AT_EMPTY_PATH))
}

func collect(t *testing.T, child *Staged) syscall.WaitStatus {
	t.Helper()
	var ws syscall.WaitStatus
	_, err := syscall.Wait4(child.Pid, &ws, 0, nil)
	require.NoError(t, err)
	_ = child.PidFD.Close()
	child.Close()
	return ws
}

func TestStagedChildMakesTheCallsOfItsScript(t *testing.T) {
	t.Parallel()
	child, out := stage(t)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	s := NewScript(1)
	s.Call("naming it", unix.SYS_SETHOSTNAME, s.Bytes([]byte("staged")), Num(6))
	missing := s.Call("looking for nothing", unix.SYS_OPENAT, Num(^uintptr(99)), s.Str("/no/such"), Num(0), Num(0)).Forgive(unix.ENOENT)
	s.Call("not made", unix.SYS_EXIT_GROUP, Num(9))
	missing.ThenSkip()
	dir := s.Call("opening /tmp", unix.SYS_OPENAT, Num(^uintptr(99)), s.Str("/tmp"), Num(unix.O_RDONLY), Num(0))
	fd := dir.Result()
	s.Call("not made either", unix.SYS_EXIT_GROUP, Num(8))
	dir.ElseSkip()
	s.Call("going there", unix.SYS_FCHDIR, fd.Arg())
	s.Call("closing it", unix.SYS_CLOSE, fd.Arg())
	s.Call("writing", unix.SYS_WRITE, Slot(0).Arg(), s.Bytes([]byte("from the script")), Num(15))
	s.shell(t, `hostname; pwd; echo $$; id -u; ls /proc/self/fd; kill -TERM $$; echo alive`)
	require.NoError(t, s.Err())
	require.NoError(t, child.Run(s, []int{int(w.Fd())}))
	require.NoError(t, w.Close())
	written, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "from the script", string(written))
	said, err := io.ReadAll(out)
	require.NoError(t, err)
	ws := collect(t, child)
	// PID 1 of a namespace is not ended by its own SIGTERM, as handlers and masks are the default ones; ls has one more.
	require.Contains(t, string(said), "staged\n/tmp\n1\n0\n0\n1\n2\n")
	require.Contains(t, string(said), "alive\n")
	require.NotContains(t, string(said), "62\n")
	require.Equal(t, 0, ws.ExitStatus(), "%v", ws)
}

func TestScriptsFailureNamesItsCall(t *testing.T) {
	t.Parallel()
	child, _ := stage(t)
	s := NewScript(0)
	s.Call("closing nothing", unix.SYS_CLOSE, Num(9999))
	err := child.Run(s, nil)
	var failure *ScriptError
	require.ErrorAs(t, err, &failure)
	require.Equal(t, &ScriptError{What: "closing nothing", Errno: unix.EBADF}, failure)
	require.Equal(t, 253, collect(t, child).ExitStatus())
}

func TestInterruptedChildIsKilled(t *testing.T) {
	t.Parallel()
	child, _ := stage(t)
	s := NewScript(0)
	s.Call("sleeping", unix.SYS_PPOLL, Num(0), Num(0), Num(0), Num(0))
	child.Interrupt()
	require.ErrorIs(t, child.Run(s, nil), os.ErrDeadlineExceeded)
	require.NoError(t, syscall.Kill(child.Pid, syscall.SIGKILL))
	require.Equal(t, syscall.SIGKILL, collect(t, child).Signal())
}

func TestChildEndsWithoutScriptWhenItsParentIsGone(t *testing.T) {
	t.Parallel()
	child, _ := stage(t)
	require.NoError(t, child.control.Close())
	require.Equal(t, 253, collect(t, child).ExitStatus())
}

func TestAStringWithAZeroByteIsRefused(t *testing.T) {
	t.Parallel()
	s := NewScript(0)
	s.Str("a\x00b")
	require.ErrorContains(t, s.Err(), "zero byte")
}

func TestManyStagedAtOnce(t *testing.T) {
	t.Parallel()
	for range 20 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			child, out := stage(t)
			s := NewScript(0)
			s.shell(t, "echo hi")
			require.NoError(t, child.Run(s, nil))
			said, err := io.ReadAll(out)
			require.NoError(t, err)
			require.Equal(t, "hi\n", string(said))
			require.Equal(t, 0, collect(t, child).ExitStatus())
		})
	}
}
