package allocdir

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// asNobody runs a program as a user of the machine that nobody is.
func asNobody(t *testing.T, argv ...string) (string, error) {
	t.Helper()
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir = "/"
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := c.CombinedOutput()
	return string(out), err
}

// openTemp is a folder that every user can come to.
func openTemp(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	dir, err := os.MkdirTemp("", "drover-shield-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	return dir
}

// TestWhatTasksLeaveGivesNoRights: B6 of the review of 2026-11-22. A local user ran what a guest, root in its container, had
// left in its allocation's folder, as the machine's root.
func TestWhatTasksLeaveGivesNoRights(t *testing.T) {
	t.Parallel()
	root := NewRoot(openTemp(t))
	require.NoError(t, root.Prepare())
	d, err := root.Dir(allocID)
	require.NoError(t, err)
	require.NoError(t, d.Build())
	require.NoError(t, root.Shield())
	require.NoError(t, d.BuildTask("web"))
	t.Cleanup(func() { require.NoError(t, root.Unshield(true)) })
	program := filepath.Join(d.Path(), "alloc/data/id")
	text, err := os.ReadFile("/usr/bin/id")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(program, text, 0o600))
	require.NoError(t, os.Chmod(program, 0o755|os.ModeSetuid))
	require.NoError(t, unix.Mknod(filepath.Join(d.Path(), "alloc/data/null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	_, err = asNobody(t, program)
	require.ErrorIs(t, err, os.ErrPermission, "others do not come to it")

	require.NoError(t, d.Admit(12345))
	_, err = asNobody(t, program)
	require.ErrorIs(t, err, os.ErrPermission, "another user's leave")
	require.NoError(t, d.Admit(65534))
	require.NoError(t, d.Build(), "called again")
	require.Equal(t, []uint32{12345, 65534}, d.admitted())
	out, err := asNobody(t, program, "-u")
	require.NoError(t, err, "a task of a user's own comes to its folder")
	require.Equal(t, "65534\n", out, "and its set-user-id bit does not count")
	_, err = os.OpenFile(filepath.Join(d.Path(), "alloc/data/null"), os.O_WRONLY, 0)
	require.ErrorIs(t, err, os.ErrPermission, "device files do not work")
	_, err = asNobody(t, "ls", d.Path())
	require.Error(t, err, "it may pass, not look around")

	require.NoError(t, root.Unshield(false))
	require.Equal(t, 1, mounts(t, root.Path()), "as long as somebody can come to what was left, it is shielded")
	require.NoError(t, d.Shut())
	require.NoError(t, root.Unshield(false))
	require.Zero(t, mounts(t, root.Path()))
	_, err = asNobody(t, program)
	require.ErrorIs(t, err, os.ErrPermission, "the task has ended")
}

func mounts(t *testing.T, path string) (n int) {
	t.Helper()
	table, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	for line := range strings.Lines(string(table)) {
		if strings.Contains(line, " "+path+" ") {
			n++
		}
	}
	return n
}

func TestShieldOverRestarts(t *testing.T) {
	t.Parallel()
	root := NewRoot(openTemp(t)).SecretsInMemory()
	require.NoError(t, root.Prepare())
	d, err := root.Dir(allocID)
	require.NoError(t, err)
	require.NoError(t, d.Build())
	require.NoError(t, d.BuildTask("web"))
	require.NoError(t, d.MountSecrets("web", 0, false), "an agent before there were shields")
	secrets := d.Task("web").Secrets
	require.NoError(t, os.WriteFile(filepath.Join(secrets, "token"), []byte("x"), 0o600))
	for range 3 { // each a restart
		require.NoError(t, root.Shield())
		require.Equal(t, 1, mounts(t, root.Path()))
		require.Equal(t, 1, mounts(t, secrets), "seen through it, and nowhere else")
		require.FileExists(t, filepath.Join(secrets, "token"))
	}
	require.NoError(t, root.Unshield(false))
	require.Equal(t, 1, mounts(t, root.Path()), "a task uses it")
	require.NoError(t, d.Remove("web"))
	require.NoError(t, root.Unshield(false))
	require.Zero(t, mounts(t, root.Path()))
	require.NoError(t, root.Unshield(true), "idempotent")
}
