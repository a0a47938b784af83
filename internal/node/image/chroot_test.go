package image

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// TestPartsOfTheMachine makes the image of Nomad's default list: users of the machine are known, what only root may read is not there.
func TestPartsOfTheMachine(t *testing.T) {
	t.Parallel()
	s := NewStore(Options{Dir: t.TempDir()})
	r, err := s.PrepareTrees(DefaultTrees())
	require.NoError(t, err)
	require.Equal(t, Chroot, r.Ref)
	require.Contains(t, r.Binds, Bind{Source: "/usr", Target: "/usr"})
	uid, _, _, err := r.LookupUser("nobody")
	require.NoError(t, err)
	require.EqualValues(t, 65534, uid)
	_, _, _, err = r.LookupUser("daemon")
	require.NoError(t, err)
	root := r.Lowers[0]
	require.NoFileExists(t, filepath.Join(root, "etc/shadow"))
	own, err := os.ReadFile(filepath.Join(root, "etc/hosts"))
	require.NoError(t, err)
	require.Equal(t, hostFiles["etc/hosts"], string(own), "a task has its own")
	target, err := os.Readlink("/bin")
	if err == nil { // a merged /usr
		inside, err := os.Readlink(filepath.Join(root, "bin"))
		require.NoError(t, err)
		require.Equal(t, target, inside)
	}
	for _, dir := range []string{"alloc", "local", "secrets", "proc", "dev", "tmp", "usr"} {
		require.DirExists(t, filepath.Join(root, dir))
	}
	again, err := s.PrepareTrees(DefaultTrees())
	require.NoError(t, err)
	require.Equal(t, r.Lowers, again.Lowers)
}

func TestPartsOfTheMachineThatAreChosen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	app := filepath.Join(dir, "app")
	require.NoError(t, os.MkdirAll(filepath.Join(app, "lib"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(app, "run"), []byte("#!/bin/sh\n"), 0o755))
	require.NoError(t, os.Symlink(app, filepath.Join(dir, "current")))
	s := NewStore(Options{Dir: filepath.Join(dir, "images")})
	r, err := s.PrepareTrees(map[string]string{
		app + "/run": "/bin/run", filepath.Join(dir, "current"): "/srv/app", filepath.Join(dir, "none"): "/none", "/usr": "/usr",
		"/etc/passwd": "/etc/passwd", "/usr/bin": "/usr/bin",
	})
	require.NoError(t, err)
	require.Equal(t, []Bind{
		{Source: app + "/run", Target: "/bin/run", File: true}, {Source: app, Target: "/srv/app"}, {Source: "/usr", Target: "/usr"},
	}, r.Binds, "in the order of their targets; /usr brings /usr/bin along")
	require.FileExists(t, filepath.Join(r.Lowers[0], "bin/run"))
	require.NoDirExists(t, filepath.Join(r.Lowers[0], "none"))
	want, err := os.ReadFile("/etc/passwd")
	require.NoError(t, err)
	got, err := os.ReadFile(filepath.Join(r.Lowers[0], "etc/passwd"))
	require.NoError(t, err)
	require.Equal(t, want, got)
	group, err := os.ReadFile(filepath.Join(r.Lowers[0], "etc/group"))
	require.NoError(t, err)
	require.Equal(t, hostFiles["etc/group"], string(group))
}

// TestPartsThatWouldWriteElsewhere: a link that was copied leads out of the image; the machine's file stays as it is.
func TestPartsThatWouldWriteElsewhere(t *testing.T) {
	t.Parallel()
	if _, err := os.Readlink("/etc/alternatives/awk"); err != nil {
		t.Skip("there is no link to try")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o644))
	before, err := os.Stat("/etc/alternatives/awk")
	require.NoError(t, err)
	s := NewStore(Options{Dir: filepath.Join(dir, "images")})
	_, err = s.PrepareTrees(map[string]string{"/etc/alternatives": "/etc/alternatives", file: "/etc/alternatives/awk/deep"})
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	after, err := os.Stat("/etc/alternatives/awk")
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestPartsThatCannotBe(t *testing.T) {
	t.Parallel()
	_, err := NewStore(Options{Dir: t.TempDir()}).PrepareTrees(map[string]string{"/proc": "/proc"})
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	require.ErrorContains(t, err, "chroot_env")
	at, ok := Inside(map[string]string{"/usr": "/u"}, "/usr/bin/java")
	require.True(t, ok)
	require.Equal(t, "/u/bin/java", at)
	_, ok = Inside(map[string]string{"/usr": "/u"}, "/opt/java")
	require.False(t, ok)
}
