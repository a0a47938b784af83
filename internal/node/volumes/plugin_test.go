package volumes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/forked"
	"github.com/drover-project/drover/volume"
)

// script writes an executable shell script.
func script(t *testing.T, path, body string) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	require.NoError(t, err)
	_, err = f.WriteString("#!/bin/sh\n" + body)
	require.NoError(t, err)
	require.NoError(t, forked.Close(f))
}

// withPlugins is a node with a folder of plugins, which it has looked at.
func withPlugins(t *testing.T, bodies map[string]string) *host {
	h := &host{T: t, cfg: newHost(t).cfg}
	h.cfg.PluginDir, h.cfg.NodeID, h.cfg.NodePool, h.cfg.Own = t.TempDir(), "node-1", "pool-1", []string{filepath.Dir(h.cfg.Dir)}
	require.NoError(t, os.Chmod(h.cfg.PluginDir, 0o700)) // whatever the umask
	for name, body := range bodies {
		script(t, filepath.Join(h.cfg.PluginDir, name), body)
	}
	h.restart()
	<-h.changed
	return h
}

// whole is a plugin that does what the protocol says, and notes its environment.
const whole = `
case "$1" in
fingerprint) test "$(env | grep -c ^DHV_)" = 1 && test "$DHV_OPERATION" = fingerprint && echo '{"version": "1.2.3"}' ;;
create)
	env | grep ^DHV_ | sort >"$DHV_PLUGIN_DIR/.create"
	mkdir -p "$DHV_VOLUMES_DIR/$DHV_VOLUME_ID"
	echo noise >&2
	printf '{"path": "%s", "bytes": 15}' "$DHV_VOLUMES_DIR/$DHV_VOLUME_ID" ;;
delete)
	env | grep ^DHV_ | sort >"$DHV_PLUGIN_DIR/.delete"
	rm -r "$DHV_CREATED_PATH" ;;
esac`

func TestAPluginMakesAndDeletesAVolume(t *testing.T) {
	t.Parallel()
	h := withPlugins(t, map[string]string{"whole": whole, ".hidden": whole, "no name": whole, "mkdir": whole})
	require.Equal(t, map[string]string{"plugins.host_volume.whole.version": "1.2.3"}, h.Attributes())
	w := volume.HostVolume{
		ID: first, Namespace: "team", PluginID: "whole", Wanted: 4, RequestedCapacityMinBytes: 10, RequestedCapacityMaxBytes: 20,
		Parameters: map[string]string{"key": "v\"al"},
	}
	have := h.ask(w)
	path := filepath.Join(h.cfg.Dir, first)
	require.Equal(t, &drover.HostVolumeInfo{ID: first, Path: path, Report: &drover.HostVolumeReport{
		Namespace: "team", Wanted: 4, CapacityBytes: 15,
	}}, have)
	env, err := os.ReadFile(filepath.Join(h.cfg.PluginDir, ".create"))
	require.NoError(t, err)
	about := strings.Join([]string{
		"DHV_NAMESPACE=team", "DHV_NODE_ID=node-1", "DHV_NODE_POOL=pool-1", "DHV_OPERATION=%s", `DHV_PARAMETERS={"key":"v\"al"}`,
		"DHV_PLUGIN_DIR=" + h.cfg.PluginDir, "DHV_VOLUMES_DIR=" + h.cfg.Dir, "DHV_VOLUME_ID=" + first, "DHV_VOLUME_NAME=data", "",
	}, "\n")
	require.Equal(t, "DHV_CAPACITY_MAX_BYTES=20\nDHV_CAPACITY_MIN_BYTES=10\n"+fmt.Sprintf(about, "create"), string(env))

	h.restart()
	<-h.changed
	w.Wanted, w.RequestedCapacityMinBytes, w.HostPath, w.CapacityBytes = 5, 16, path, 15
	have = h.ask(w)
	require.Contains(t, have.Report.Failure, "it made 15 bytes, which is less than capacity_min (16)")
	require.DirExists(t, path, "it was there before: what is in it stays")
	w.Wanted, w.State, w.Parameters = 6, volume.HostVolumeDeleting, nil
	require.True(t, h.ask(w).Report.Gone)
	require.NoDirExists(t, path)
	env, err = os.ReadFile(filepath.Join(h.cfg.PluginDir, ".delete"))
	require.NoError(t, err)
	require.Equal(t, "DHV_CREATED_PATH="+path+"\n"+fmt.Sprintf(strings.Replace(about, `{"key":"v\"al"}`, "{}", 1), "delete"), string(env))
}

// What a plugin that is not well does is told, is of no consequence to other volumes, and nothing of a new volume is left.
func TestPluginsThatAreNotWell(t *testing.T) {
	t.Parallel()
	fingerprints := "case $1 in fingerprint) echo '{\"version\": \"1\"}'; exit;; delete) echo x >>$DHV_PLUGIN_DIR/.undone; exit;; esac\n"
	secret := "echo '{\"path\": \"'%s'\"}'"
	anew := fingerprints + "v=$DHV_VOLUMES_DIR/$DHV_VOLUME_ID; rm -rf $v; "
	bodies := map[string]string{
		"fails":    fingerprints + "echo pipe broke >&2; exit 3",
		"says":     fingerprints + `echo '{"error": "no room\u001b[31m"}'; exit 1`,
		"garbles":  fingerprints + "echo made it",
		"floods":   fingerprints + "yes",
		"nothing":  fingerprints + "echo '{}'",
		"relative": fingerprints + `echo '{"path": "tmp"}'`,
		"nowhere":  fingerprints + `echo '{"path": "/none/of/this"}'`,
		"root":     fingerprints + fmt.Sprintf(secret, "/"),
		"own":      fingerprints + fmt.Sprintf(secret, `$(dirname "$DHV_VOLUMES_DIR")`),
		"all":      fingerprints + fmt.Sprintf(secret, `"$DHV_VOLUMES_DIR"`),
		"other":    fingerprints + "mkdir -p $DHV_VOLUMES_DIR/" + second + "; " + fmt.Sprintf(secret, `"$DHV_VOLUMES_DIR"/`+second),
		"link":     anew + "ln -s / $v; " + fmt.Sprintf(secret, "$v"),
		"large":    anew + `mkdir -p $v; printf '{"path": "%s", "bytes": 99}' $v`,
		"negative": anew + `mkdir -p $v; printf '{"path": "%s", "bytes": -1}' $v`,
	}
	h := withPlugins(t, bodies)
	wanted := uint64(0)
	for name, want := range map[string]string{
		"fails":    "plugin fails: create: exit status 3: pipe broke",
		"says":     "plugin says: create: exit status 1: no room [31m",
		"garbles":  `plugin garbles: create: it must print JSON, and printed "made it\n"`,
		"floods":   "it printed more than 1048576 bytes",
		"nothing":  `"path" must be absolute, got ""`,
		"relative": `"path" must be absolute, got "tmp"`,
		"nowhere":  "no such file or directory",
		"root":     "the agent's data folder",
		"own":      "the agent's data folder",
		"all":      "is not the volume's",
		"other":    "is not the volume's",
		"link":     "the agent's data folder",
		"large":    "it made 99 bytes, which is more than capacity_max (50)",
		"negative": `"bytes" must not be negative`,
		"none":     `this node has no host volume plugin "none"`,
		"../fails": `this node has no host volume plugin "../fails"`,
	} {
		wanted++
		have := h.ask(volume.HostVolume{ID: first, PluginID: name, Wanted: wanted, RequestedCapacityMaxBytes: 50})
		require.False(t, have.Offered(), name)
		require.Contains(t, have.Report.Failure, want, name)
	}
	undone, err := os.ReadFile(filepath.Join(h.cfg.PluginDir, ".undone"))
	require.NoError(t, err)
	require.Equal(t, len(bodies), strings.Count(string(undone), "x"), "what it may have made is deleted")
}

// Plugins are looked for again, and who cannot be asked, or could be changed by others, is not used.
func TestPluginsThatAreNotUsed(t *testing.T) {
	t.Parallel()
	cfg := newHost(t).cfg
	cfg.PluginDir = t.TempDir()
	require.NoError(t, os.Chmod(cfg.PluginDir, 0o700)) // whatever the umask
	m := New(cfg)
	look := func() map[string]string {
		m.look(t.Context())
		return m.Attributes()
	}
	create := func(name string) string {
		return m.perform(t.Context(), &volume.HostVolume{ID: first, Name: "data", PluginID: name, Wanted: 1}).Failure
	}
	require.Empty(t, look())
	path := filepath.Join(cfg.PluginDir, "p")
	for _, c := range []struct {
		body string
		mode os.FileMode
		want string
	}{
		{whole, 0o644, "is not executable: chmod 755"},
		{whole, 0o775, "can be written by other users: chmod go-w"},
		{whole, 0o757, "can be written by other users: chmod go-w"},
		{"exit 1", 0o755, "exit status 1"},
		{"echo '{}'", 0o755, `"version" must be`},
		{`echo '{"version": 1}'`, 0o755, "must print JSON"},
		{`echo '{"version": "a b"}'`, 0o755, `"version" must be`},
		{`echo '{"version": "` + strings.Repeat("1", 65) + `"}'`, 0o755, `"version" must be`},
	} {
		script(t, path, c.body)
		require.NoError(t, os.Chmod(path, c.mode))
		require.Contains(t, look()["plugins.host_volume.p.missing"], c.want, c.body)
		require.Empty(t, look()["plugins.host_volume.p.version"])
		require.Contains(t, create("p"), `this node cannot use the host volume plugin "p"`)
	}
	script(t, path, whole)
	require.NoError(t, os.Chmod(path, 0o755))
	require.Equal(t, map[string]string{"plugins.host_volume.p.version": "1.2.3"}, look())
	require.False(t, m.look(t.Context()), "nothing is new")

	// Who may write into the folder, or one above it, may put another program there; it is looked at before each call.
	require.NoError(t, os.Chmod(cfg.PluginDir, 0o777))
	require.Contains(t, create("p"), "can be written by other users")
	require.NoError(t, os.Chmod(cfg.PluginDir, 0o700))
	open := t.TempDir()
	script(t, filepath.Join(open, "elsewhere"), whole)
	require.NoError(t, os.Symlink(filepath.Join(open, "elsewhere"), filepath.Join(cfg.PluginDir, "linked")))
	require.Equal(t, "1.2.3", look()["plugins.host_volume.linked.version"])
	require.NoError(t, os.Chmod(open, 0o777))
	require.Contains(t, create("linked"), "can be written by other users")
	require.NoError(t, os.Remove(path))
	require.NotContains(t, look(), "plugins.host_volume.p.version")
}

// A plugin that hangs is ended with what it started, and keeps no other volume waiting; the agent may end meanwhile.
func TestAPluginThatHangs(t *testing.T) {
	t.Parallel()
	h := withPlugins(t, map[string]string{"hangs": `
		case $1 in fingerprint) echo '{"version": "1"}'; exit;; esac
		sleep 1000 & echo $! >$DHV_PLUGIN_DIR/.child.new; mv $DHV_PLUGIN_DIR/.child.new $DHV_PLUGIN_DIR/.child
		wait`})
	p, err := h.plugin("hangs")
	require.NoError(t, err)
	_, err = p.run(t.Context(), 300*time.Millisecond, "create", "DHV_PLUGIN_DIR="+h.cfg.PluginDir)
	require.ErrorContains(t, err, "it did not end within 300ms")
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	child, err := os.ReadFile(filepath.Join(h.cfg.PluginDir, ".child"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		state, err := os.ReadFile("/proc/" + strings.TrimSpace(string(child)) + "/stat")
		return err != nil || strings.Contains(string(state), ") Z ")
	}, 10*time.Second, time.Millisecond, "its child is ended, too")

	slow := &volume.HostVolume{ID: first, Name: "slow", PluginID: "hangs", Wanted: 1}
	quick := &volume.HostVolume{ID: second, Name: "quick", PluginID: volume.DefaultVolumePlugin, Wanted: 1}
	h.Want([]*volume.HostVolume{slow, quick})
	<-h.changed
	require.True(t, h.Offered()["quick"].Offered())
	require.Nil(t, h.Offered()["slow"])
	ctx, end := context.WithCancel(t.Context())
	end()
	require.False(t, h.look(ctx), "the agent ends")
}
