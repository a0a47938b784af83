package spawn

import (
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestABareChildSeesOneEmptyDirectory(t *testing.T) {
	t.Parallel()
	if !CanBare() {
		require.NotZero(t, os.Geteuid(), "root can")
		return
	}
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	child, err := StartBare(Stage{
		Files: []int{int(null.Fd())}, Program: int(null.Fd()),
		Namespaces: unix.CLONE_NEWUSER | unix.CLONE_NEWPID, Unshare: unix.CLONE_NEWNS,
	})
	require.NoError(t, err)
	s := NewScript(1)
	for _, path := range []string{"/proc", "/etc", "/usr", "/dev", "/tmp/tmp", "/../etc"} {
		look := s.Call("looking for "+path, unix.SYS_OPENAT, Num(^uintptr(99)), s.Str(path), Num(unix.O_PATH), Num(0)).Forgive(unix.ENOENT)
		s.Call(path+" is there", unix.SYS_CLOSE, Num(9999))
		look.ThenSkip()
	}
	s.Call("writing", unix.SYS_MKDIRAT, Num(^uintptr(99)), s.Str(EmptyRoot+"/x"), Num(0o755)).Forgive(unix.EROFS, unix.EACCES)
	dir := s.Call("opening the directory", unix.SYS_OPENAT, Num(^uintptr(99)), s.Str(EmptyRoot), Num(unix.O_DIRECTORY), Num(0)).Result()
	s.Call("going there", unix.SYS_FCHDIR, dir.Arg())
	s.Call("telling", unix.SYS_WRITE, Slot(0).Arg(), s.Bytes([]byte("bare")), Num(4))
	s.Call("ending", unix.SYS_EXIT_GROUP, Num(7))
	require.NoError(t, child.Run(s, []int{int(w.Fd())})) // its control socket closes, as at an exec
	require.NoError(t, w.Close())
	said, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "bare", string(said))
	require.Equal(t, 7, collect(t, child).ExitStatus())
}
