package allocdir_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/node/allocdir"
	"github.com/drover-project/drover/internal/programtest"
)

// newSecrets is a root whose tasks have their secrets in memory.
func newSecrets(t *testing.T) (allocdir.Root, allocdir.Dir) {
	t.Helper()
	r := allocdir.NewRoot(t.TempDir()).SecretsInMemory()
	require.NoError(t, r.Prepare())
	if why := r.SecretsOnDisk(); why != "" {
		require.NotEqual(t, "true", os.Getenv("CI"), why)
		t.Skip(why)
	}
	d, err := r.Dir(id.Random{}.New())
	require.NoError(t, err)
	require.NoError(t, d.Build())
	require.NoError(t, d.BuildTask("web"))
	t.Cleanup(func() { require.NoError(t, d.Remove("web")) })
	return r, d
}

func TestSecretsAreInMemory(t *testing.T) {
	t.Parallel()
	r, d := newSecrets(t)
	path := d.Task("web").Secrets
	var st unix.Statfs_t
	require.NoError(t, d.MountSecrets("web", 0, true))
	require.NoError(t, unix.Statfs(path, &st))
	require.Equal(t, r.ShiftedSecretsOnDisk() == "", st.Type == unix.TMPFS_MAGIC)
	require.NoError(t, d.MountSecrets("web", 0, false))
	require.NoError(t, unix.Statfs(path, &st))
	require.Equal(t, int64(unix.TMPFS_MAGIC), int64(st.Type))
	require.Equal(t, uint64(1<<20), st.Blocks*uint64(st.Bsize))
	require.Error(t, os.WriteFile(filepath.Join(path, "much"), make([]byte, 2<<20), 0o600))
	require.NoError(t, os.Remove(filepath.Join(path, "much")))
	script := filepath.Join(path, "x")
	programtest.Write(t, script, []byte("#!/bin/sh\n"))
	require.ErrorIs(t, exec.Command(script).Run(), os.ErrPermission)

	require.NoError(t, d.MountSecrets("web", 0, false), "again")
	require.FileExists(t, script)
	usage, err := d.Usage()
	require.NoError(t, err)
	require.Less(t, usage.Bytes, uint64(1<<20))
	require.NoError(t, d.UnmountSecrets("web"))
	require.NoError(t, d.UnmountSecrets("web"))
	require.NoFileExists(t, script)
	require.DirExists(t, path)
}

// TestSecretsAreNobodyElses: what a task left in its file system is not seen by the next one.
func TestSecretsAreNobodyElses(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(path string) error{
		"nothing": func(string) error { return nil },
		"a file":  func(p string) error { return os.WriteFile(filepath.Join(p, "f"), nil, 0o600) },
		"modes":   func(p string) error { return os.Chmod(p, 0o500) },
		"owners":  func(p string) error { return os.Chown(p, 1234, 1) },
		"words":   func(p string) error { return unix.Setxattr(p, "trusted.word", []byte("x"), 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, d := newSecrets(t)
			path := d.Task("web").Secrets
			for range 3 {
				require.NoError(t, d.MountSecrets("web", 0, false))
				entries, err := os.ReadDir(path)
				require.NoError(t, err)
				require.Empty(t, entries)
				var st unix.Stat_t
				require.NoError(t, unix.Stat(path, &st))
				require.Equal(t, []uint32{unix.S_IFDIR | 0o777, 0, 0}, []uint32{st.Mode, st.Uid, st.Gid})
				n, err := unix.Listxattr(path, nil)
				require.NoError(t, err)
				require.Zero(t, n)
				require.NoError(t, leave(path))
				require.NoError(t, d.UnmountSecrets("web"))
			}
		})
	}
}

func TestSecretsOutliveAnAgentAndGoWithTheFolder(t *testing.T) {
	t.Parallel()
	_, d := newSecrets(t)
	require.NoError(t, d.MountSecrets("web", 3, false))
	file := filepath.Join(d.Task("web").Secrets, "f")
	require.NoError(t, os.WriteFile(file, make([]byte, 2<<20), 0o600))
	later := allocdir.NewRoot(filepath.Dir(filepath.Dir(d.Path()))).SecretsInMemory()
	require.NoError(t, later.Prepare())
	again, err := later.Dir(filepath.Base(d.Path()))
	require.NoError(t, err)
	require.NoError(t, again.MountSecrets("web", 3, false))
	require.FileExists(t, file)
	require.NoError(t, again.Remove()) // it does not know the task's name
	require.NoDirExists(t, d.Path())
}

// TestSecretsOnDiskStay: what was put there before is not covered.
func TestSecretsOnDiskStay(t *testing.T) {
	t.Parallel()
	_, d := newSecrets(t)
	file := filepath.Join(d.Task("web").Secrets, "f")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, d.MountSecrets("web", 0, false))
	require.FileExists(t, file)
}
