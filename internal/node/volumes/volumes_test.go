package volumes

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/volume"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	first  = "11111111-2222-4333-8444-555555555555"
	second = "21111111-2222-4333-8444-555555555555"
)

// host is a node with volumes in a folder of the test.
type host struct {
	*testing.T
	*Volumes
	cfg     Config
	changed chan struct{}
}

func newHost(t *testing.T) *host {
	dir := t.TempDir()
	h := &host{T: t, cfg: Config{
		Dir: filepath.Join(dir, "volumes"), File: filepath.Join(dir, "client", "v.json"), Allowed: []string{"/"},
		Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
	}}
	h.restart()
	return h
}

// restart is a new process on the same disk.
func (h *host) restart() {
	m := New(h.cfg)
	ctx, end := context.WithCancel(h.Context())
	changed, done := make(chan struct{}, 10), make(chan struct{})
	h.Volumes, h.changed = m, changed
	go func() { // ends with ctx
		defer close(done)
		m.Run(ctx, func() { changed <- struct{}{} })
	}()
	h.Cleanup(func() {
		end()
		<-done
	})
}

// ask wants a volume and returns what became of it.
func (h *host) ask(w volume.HostVolume) *drover.HostVolumeInfo {
	h.Helper()
	w.Name = "data"
	h.Want([]*volume.HostVolume{&w})
	<-h.changed
	return h.Offered()["data"]
}

func TestAVolumeIsMadeRememberedAndDeleted(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	want := volume.HostVolume{
		ID: first, Namespace: "team", PluginID: volume.DefaultVolumePlugin, State: volume.HostVolumePending, Wanted: 5,
		Parameters: map[string]string{"mode": "1750", "uid": strconv.Itoa(os.Getuid()), "gid": strconv.Itoa(os.Getgid())},
	}
	have := h.ask(want)
	require.Equal(t, &drover.HostVolumeInfo{
		ID: first, Path: filepath.Join(h.cfg.Dir, first), Report: &drover.HostVolumeReport{Namespace: "team", Wanted: 5},
	}, have)
	require.True(t, have.OfferedTo("team"))
	require.False(t, have.OfferedTo("default"))
	info, err := os.Stat(have.Path)
	require.NoError(t, err)
	require.Equal(t, fs.ModeDir|fs.ModeSticky|0o750, info.Mode())
	file := filepath.Join(have.Path, "rows")
	require.NoError(t, os.WriteFile(file, []byte("1"), 0o600))

	h.restart()
	require.Equal(t, have, h.Offered()["data"], "before control says anything")
	want.Wanted, want.Parameters = 9, map[string]string{"mode": "0700"}
	require.EqualValues(t, 9, h.ask(want).Report.Wanted)
	require.FileExists(t, file, "it is asked for once more: what is in it stays")

	want.Wanted, want.State = 12, volume.HostVolumeDeleting
	w := want
	w.Name = "data"
	require.True(t, h.Want([]*volume.HostVolume{&w}), "it is not offered from now on")
	<-h.changed
	gone := h.Offered()["data"]
	require.Equal(t, &drover.HostVolumeReport{Namespace: "team", Wanted: 12, Gone: true}, gone.Report)
	require.False(t, gone.Offered())
	require.NoDirExists(t, have.Path)
	require.True(t, h.Want(nil))
	require.Empty(t, h.Offered(), "control has heard it")
	h.restart()
	require.Empty(t, h.Offered())
}

// What control does not know any more is not mounted, but nobody asked for its end.
func TestWhatIsNotListedStaysOnTheDisk(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	have := h.ask(volume.HostVolume{ID: first, PluginID: "mkdir", Wanted: 1})
	require.True(t, h.Want(nil))
	require.Empty(t, h.Offered())
	require.DirExists(t, have.Path)
	require.False(t, h.Want(nil))
}

// A registered folder is never deleted.
func TestARegisteredFolderStays(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	path := t.TempDir()
	w := volume.HostVolume{ID: first, Registered: true, HostPath: path, Wanted: 1}
	require.Equal(t, path, h.ask(w).Path)
	w.State, w.Wanted = volume.HostVolumeDeleting, 2
	require.True(t, h.ask(w).Report.Gone)
	require.DirExists(t, path)
	file := filepath.Join(path, "f")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for i, bad := range []string{file, path + "/nowhere"} {
		have := h.ask(volume.HostVolume{ID: second, Registered: true, HostPath: bad, Wanted: uint64(i + 1)})
		require.False(t, have.Offered())
		require.Contains(t, have.Report.Failure, "HostPath: ")
	}
}

// Who may register any folder is root on the node: its configuration says which may be.
func TestOnlyAllowedFoldersAreRegistered(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	parent := t.TempDir()
	allowed := filepath.Join(parent, "srv")
	for _, dir := range []string{allowed + "/data", allowed + "-else"} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	require.NoError(t, os.Symlink("/etc", filepath.Join(allowed, "out")))
	index := uint64(0)
	register := func(path string) *drover.HostVolumeInfo {
		index++
		return h.ask(volume.HostVolume{ID: first, Registered: true, HostPath: path, Wanted: index})
	}
	for _, paths := range [][]string{nil, {allowed + "/"}} {
		h.cfg.Allowed = paths
		h.restart()
		for _, path := range []string{parent, allowed + "-else", allowed + "/out", allowed + "/../srv-else"} {
			have := register(path)
			require.False(t, have.Offered(), path)
			require.Contains(t, have.Report.Failure, "client.host_volume_paths", path)
		}
		require.Equal(t, paths != nil, register(allowed).Offered())
		require.Equal(t, paths != nil, register(allowed+"/data").Offered())
	}
}

// A job that mounts the agent's folder would have its keys and what other tasks keep secret.
func TestTheAgentsFolderIsNoVolume(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	parent := t.TempDir()
	own, elsewhere := filepath.Join(parent, "drover"), t.TempDir()
	h.cfg.Own = []string{filepath.Join(parent, "not-there"), own, elsewhere}
	require.NoError(t, os.MkdirAll(own+"/alloc", 0o700))
	require.NoError(t, os.MkdirAll(own+"-else", 0o700))
	link := filepath.Join(parent, "link")
	require.NoError(t, os.Symlink("drover/alloc", link))
	h.restart()
	for i, path := range []string{own, elsewhere, own + "/alloc", link, parent, "/"} {
		have := h.ask(volume.HostVolume{ID: second, Registered: true, HostPath: path, Wanted: uint64(i + 1)})
		require.False(t, have.Offered(), path)
		require.Contains(t, have.Report.Failure, "the agent's data folder", path)
	}
	require.True(t, h.ask(volume.HostVolume{ID: first, Registered: true, HostPath: own + "-else", Wanted: 1}).Offered())
}

func TestRequestsThatCannotBeDone(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	index := uint64(0)
	with := func(name, value string) volume.HostVolume {
		return volume.HostVolume{ID: first, PluginID: "mkdir", Parameters: map[string]string{name: value}}
	}
	for _, c := range []struct {
		volume volume.HostVolume
		says   string
	}{
		{volume.HostVolume{ID: "../escape", PluginID: "mkdir"}, "is not a UUID"},
		{volume.HostVolume{ID: first, PluginID: "zfs"}, `no host volume plugin "zfs"`},
		{with("size", "1"), "parameters.size: mkdir knows uid, gid and mode"},
		{with("uid", "root"), "parameters.uid: must be a number"},
		{with("gid", "4294967295"), "parameters.gid: must be a number"},
		{with("gid", "-1"), "parameters.gid: must be a number"},
		{with("mode", "4755"), "parameters.mode: must be an octal number"},
		{with("mode", "rwx"), "parameters.mode: must be an octal number"},
	} {
		index++
		c.volume.Wanted = index
		have := h.ask(c.volume)
		require.False(t, have.Offered(), "%+v", c.volume)
		require.Contains(t, have.Report.Failure, c.says)
		require.Equal(t, index, have.Report.Wanted)
	}
	require.NoDirExists(t, filepath.Join(h.cfg.Dir, first))
	require.NoError(t, os.WriteFile(h.cfg.Dir, nil, 0o600))
	have := h.ask(volume.HostVolume{ID: first, PluginID: "mkdir", Wanted: 100})
	require.Contains(t, have.Report.Failure, "making the folder of host volumes")
}

// A guest that left a link cannot have what it points to deleted.
func TestLinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "f"), nil, 0o600))
	w := volume.HostVolume{ID: first, PluginID: "mkdir", Wanted: 1}
	have := h.ask(w)
	require.NoError(t, os.Symlink(outside, filepath.Join(have.Path, "link")))
	w.State, w.Wanted = volume.HostVolumeDeleting, 2
	require.True(t, h.ask(w).Report.Gone)
	require.FileExists(t, filepath.Join(outside, "f"))
}

// A node that forgot its volumes takes their folders up again.
func TestADamagedFile(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	w := volume.HostVolume{ID: first, PluginID: "mkdir", Wanted: 1}
	have := h.ask(w)
	file := filepath.Join(have.Path, "rows")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, damage := range []string{"{", "[null]", "[{}, 1]"} {
		require.NoError(t, os.WriteFile(h.cfg.File, []byte(damage), 0o600))
		h.restart()
		require.Equal(t, have, h.ask(w))
		require.FileExists(t, file)
	}
}

// A set-user-id program that a container's root left in a volume is in reach of no other user of the machine, however open the volume is.
func TestOtherUsersDoNotComeToVolumes(t *testing.T) {
	t.Parallel()
	made := func(h *host, name string) *drover.HostVolumeInfo {
		return h.ask(volume.HostVolume{ID: name, PluginID: "mkdir", Wanted: 1, Parameters: map[string]string{"mode": "0777"}})
	}
	h := newHost(t)
	require.True(t, made(h, first).Offered())
	info, err := os.Stat(h.cfg.Dir)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())

	require.NoError(t, os.Chmod(h.cfg.Dir, 0o755)) // as it was made before
	require.True(t, made(h, second).Offered())
	info, err = os.Stat(h.cfg.Dir)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o750), info.Mode().Perm())

	h = newHost(t)
	require.NoError(t, os.MkdirAll(filepath.Join(h.cfg.Dir, "others"), 0o755))
	require.NoError(t, os.Chmod(h.cfg.Dir, 0o755))
	have := made(h, first)
	require.False(t, have.Offered())
	require.Contains(t, have.Report.Failure, `has also "others": give volumes a folder of their own`)
	info, err = os.Stat(h.cfg.Dir)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o755), info.Mode().Perm(), "it is not only ours")
}

// What is mounted is the folder that was there when it was registered, whoever can change a link to it.
func TestARegisteredLinkIsFollowedOnce(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	known, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(known, link))
	require.Equal(t, known, h.ask(volume.HostVolume{ID: first, Registered: true, HostPath: link, Wanted: 1}).Path)
}
