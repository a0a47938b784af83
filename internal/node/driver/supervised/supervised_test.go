package supervised

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/network"
)

func TestTheEnvironmentInside(t *testing.T) {
	t.Parallel()
	top := "/var/lib/drover/alloc/0123"
	spec := &driver.Spec{
		Dirs: driver.Dirs{Shared: top + "/alloc", Local: top + "/web/local", Secrets: top + "/web/secrets"},
		Env: map[string]string{
			"CONF": top + "/web/local/app.conf:" + top + "/web/secrets/key", "LOGS": top + "/alloc/logs", "NAME": "task",
			"NOMAD_TASK_DIR": "what the host calls it",
		},
	}
	env := Environment(spec, []string{"PATH=/image/bin", "NAME=image", "ONLY=image=1", "broken"})
	require.Equal(t, map[string]string{
		"PATH": "/image/bin", "NAME": "task", "ONLY": "image=1", "CONF": "/local/app.conf:/secrets/key", "LOGS": "/alloc/logs",
		"NOMAD_ALLOC_DIR": AllocPath, "NOMAD_TASK_DIR": LocalPath, "NOMAD_SECRETS_DIR": SecretsPath,
	}, env)
	require.Equal(t, defaultPath, Environment(&driver.Spec{}, nil)["PATH"])
	require.Equal(t, "/x y", InsidePaths(driver.Dirs{Local: "/x"}).Replace("/x y"), "a path that could be met by chance stays")
}

func TestFoldersWithNothingInThem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.True(t, EmptyDir(dir))
	require.True(t, EmptyDir(filepath.Join(dir, "none")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), nil, 0o600))
	require.False(t, EmptyDir(dir))
	require.False(t, EmptyDir(filepath.Join(dir, "f")), "a file is no folder")
}

func TestTheFolderOfLogs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, l := range []driver.LogConfig{{}, {Dir: dir, Disabled: true}} {
		f, err := OpenLogs(l)
		require.NoError(t, err)
		require.Nil(t, f)
	}
	f, err := OpenLogs(driver.LogConfig{Dir: dir})
	require.NoError(t, err)
	require.Equal(t, dir, f.Name())
	require.NoError(t, f.Close())
	_, err = OpenLogs(driver.LogConfig{Dir: filepath.Join(dir, "none")})
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestAStartThatWasInterrupted is found by what it left with its supervisor, and by nothing of another start.
func TestAStartThatWasInterrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	asked := driver.State{ID: "a/t/1", StateDir: dir}
	_, interrupted, err := Kept(asked)
	require.True(t, interrupted)
	require.ErrorIs(t, err, driver.ErrGone, "it did not come so far")

	left := driver.State{ID: "a/t/1", Driver: "x", TaskName: "t", Data: []byte(`{"pid":7}`), StateDir: dir}
	require.NoError(t, Keep(dir, left))
	got, interrupted, err := Kept(asked)
	require.NoError(t, err)
	require.True(t, interrupted)
	require.Equal(t, left.Data, got.Data)
	require.Equal(t, "x", got.Driver)

	whole := driver.State{ID: "a/t/1", StateDir: "/none", Data: []byte(`{}`)}
	got, interrupted, err = Kept(whole)
	require.NoError(t, err)
	require.False(t, interrupted)
	require.Equal(t, whole, got)

	for what, text := range map[string]string{
		"another start": `{"id":"a/t/2","data":"e30="}`, "half a file": `{"id":"a/t`, "nothing": "",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, startFile), []byte(text), 0o600))
		_, _, err = Kept(asked)
		require.ErrorIs(t, err, driver.ErrGone, what)
	}
	require.ErrorIs(t, Keep(filepath.Join(dir, "none"), left), os.ErrNotExist)
}

func TestTheResolversConfiguration(t *testing.T) {
	t.Parallel()
	spec := &driver.Spec{Dirs: driver.Dirs{State: t.TempDir()}}
	path, err := Resolver(spec)
	require.NoError(t, err)
	require.Empty(t, path, "the group asks for none")
	spec.Networks = []*network.Resource{{DNS: &network.DNSConfig{}}}
	path, err = Resolver(spec)
	require.NoError(t, err)
	require.Empty(t, path, "it says nothing")
	spec.Networks[0].DNS = &network.DNSConfig{
		Servers: []string{"10.0.0.1", "10.0.0.2"}, Searches: []string{"a.test", "b.test"}, Options: []string{"ndots:2"},
	}
	path, err = Resolver(spec)
	require.NoError(t, err)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	text := string(b)
	require.Contains(t, text, "nameserver 10.0.0.1\nnameserver 10.0.0.2\n")
	require.Contains(t, text, "search a.test b.test\n")
	require.Contains(t, text, "options ndots:2\n")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o644), info.Mode().Perm(), "the task reads it")
	spec.Dirs.State = "/none"
	_, err = Resolver(spec)
	require.ErrorContains(t, err, "resolv.conf")
}
