package chroot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/sandbox"
	"github.com/drover-project/drover/internal/validation"
)

// TestWhatATaskOfNomadsExpects: the user, the folders, and the machine's users and programs.
func TestWhatATaskOfNomadsExpects(t *testing.T) {
	t.Parallel()
	b := newBench(t, NewExec)
	exit, out := b.run(t, sh(`
id -un; pwd; echo $NOMAD_TASK_DIR $NOMAD_ALLOC_DIR $NOMAD_SECRETS_DIR
echo x > /local/made; echo x > /tmp/made && echo tmp
cat /config/app.conf; cat /etc/task.conf
getent passwd daemon >/dev/null && echo users
cat /etc/shadow 2>/dev/null; touch /usr/x 2>/dev/null && echo changed; echo changed >> /etc/passwd
true`), func(s *driver.Spec) {
		for name, text := range map[string]string{"config/app.conf": "configuration\n", "etc/task.conf": "beside the machine's\n", "tmp/x": ""} {
			path := filepath.Join(s.Dirs.Task, name)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		}
		require.NoError(t, os.Chmod(filepath.Join(s.Dirs.Task, "tmp"), 0o777|os.ModeSticky))
	})
	require.Zero(t, exit.Code, out)
	require.Equal(t, "nobody\n/\n/local /alloc /secrets\ntmp\nconfiguration\nbeside the machine's\nusers\n", out)

	// As on Nomad, its capabilities let it write to its root, which is nobody else's: neither another task's nor the machine's.
	exit, out = b.run(t, sh("grep changed /etc/passwd"))
	require.Equal(t, 1, exit.Code, out)
	machines, err := os.ReadFile("/etc/passwd")
	require.NoError(t, err)
	require.NotContains(t, string(machines), "changed")
}

// TestProgramsOfArtifacts are found where Nomad looks for them, and made executable.
func TestProgramsOfArtifacts(t *testing.T) {
	t.Parallel()
	b := newBench(t, NewExec)
	volume := t.TempDir()
	require.NoError(t, os.Chmod(volume, 0o755))
	script := func(path string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\necho $0\n"), 0o644))
	}
	for command, want := range map[string]string{
		"app": "/local/app", "sub/app": "/local/sub/app", "/local/app": "/local/app", "local/app": "/local/app",
		"top": "/top", "vol": "/data/vol",
	} {
		exit, out := b.run(t, map[string]any{"command": command}, func(s *driver.Spec) {
			script(filepath.Join(s.Dirs.Local, "app"))
			script(filepath.Join(s.Dirs.Local, "sub/app"))
			script(filepath.Join(s.Dirs.Task, "top"))
			script(filepath.Join(volume, "vol"))
			require.NoError(t, os.Chmod(filepath.Join(volume, "vol"), 0o755))
			s.Mounts = []driver.Mount{{Source: volume, Target: "/data", ReadOnly: true}}
		})
		require.Zero(t, exit.Code, out)
		require.Equal(t, want+"\n", out, command)
	}
	exit, out := b.run(t, map[string]any{"command": "pwd", "work_dir": "/usr"})
	require.Zero(t, exit.Code)
	require.Equal(t, "/usr\n", out)
}

// TestALinkThatAGuestLeft for the agent to change the mode of a file of the machine.
func TestALinkThatAGuestLeft(t *testing.T) {
	t.Parallel()
	b := newBench(t, NewExec)
	victim := filepath.Join(t.TempDir(), "victim")
	require.NoError(t, os.WriteFile(victim, nil, 0o600))
	spec := drivertestSpec(t, b, "app")
	require.NoError(t, os.Symlink(victim, filepath.Join(spec.Dirs.Local, "app")))
	_, err := b.Start(t.Context(), spec)
	require.Error(t, err)
	info, err := os.Stat(victim)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
}

// TestCapabilities: those of its root are what a task may use; none is left when all are dropped.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	b := newBench(t, NewExec, func(c *Config) { c.AllowCaps = append([]string{"CAP_NET_RAW"}, usualCaps...) })
	bounding := func(config map[string]any) string {
		config["command"], config["args"] = "/bin/sh", []any{"-c", "grep CapBnd /proc/self/status"}
		exit, out := b.run(t, config, func(s *driver.Spec) { s.User = "root" })
		require.Zero(t, exit.Code, out)
		return strings.TrimLeft(strings.Fields(out)[1], "0")
	}
	require.Empty(t, bounding(map[string]any{"cap_drop": []any{"all"}}))
	require.Equal(t, "2000", bounding(map[string]any{"cap_drop": []any{"ALL"}, "cap_add": []any{"net_raw"}}))
	require.Equal(t, "280425fb", bounding(map[string]any{"cap_add": []any{"CAP_NET_RAW"}}), "what docker gives, without setfcap")
	require.Equal(t, "280405fb", bounding(map[string]any{}))
	effective := func(config map[string]any) string {
		config["command"], config["args"] = "/bin/sh", []any{"-c", "grep CapEff /proc/self/status"}
		exit, out := b.run(t, config)
		require.Zero(t, exit.Code, out)
		return strings.TrimLeft(strings.Fields(out)[1], "0")
	}
	// A task of another user has them as well, as on Nomad.
	require.Equal(t, "280405fb", effective(map[string]any{}))
	require.Equal(t, "400", effective(map[string]any{"cap_drop": []any{"all"}, "cap_add": []any{"net_bind_service"}}))
	require.Empty(t, effective(map[string]any{"cap_drop": []any{"all"}}))
}

func TestProblemsOfAConfiguration(t *testing.T) {
	t.Parallel()
	d := NewExec(Config{Sandbox: sandbox.New(sandbox.Config{})})
	for _, c := range []struct {
		config map[string]any
		says   string
	}{
		{map[string]any{}, "command: an exec task needs a program"},
		{map[string]any{"command": "x", "comand": "y"}, `unknown key "comand"; did you mean "command"?`},
		{map[string]any{"command": "x", "work_dir": "rel"}, `work_dir: "rel" is not an absolute path`},
		{map[string]any{"command": "x", "pid_mode": "host"}, "pid_mode: host is not to be had"},
		{map[string]any{"command": "x", "pid_mode": "other"}, `pid_mode: "other" is none of private, host`},
		{map[string]any{"command": "x", "ipc_mode": "host"}, `ipc_mode: host needs default_ipc_mode = "host"`},
		{map[string]any{"command": "x", "ipc_mode": "other"}, `ipc_mode: "other" is none of private, host`},
		{map[string]any{"command": "x", "cap_add": []any{"net_raw"}}, `cap_add: this node does not allow "net_raw"`},
		{map[string]any{"command": "x", "cap_add": []any{"sys_admin"}}, `cap_add: "sys_admin" is no capability that means anything`},
		{map[string]any{"command": "x", "cap_drop": []any{"nothing"}}, `cap_drop: "nothing" is no capability`},
		{map[string]any{"command": "x", "image": "docker.io/x"}, `unknown key "image"`},
	} {
		err := d.Validate(&drover.Task{Driver: Exec, Config: c.config})
		require.Equal(t, drover.Invalid, drover.CodeOf(err), c.says)
		require.ErrorContains(t, err, c.says)
	}
	for _, config := range []map[string]any{
		{"command": "x", "args": []any{"a", 1}, "pid_mode": "private", "ipc_mode": "private", "work_dir": "/srv"},
		{"command": "x", "cap_drop": []any{"all"}, "cap_add": []any{"chown", "CAP_MKNOD"}},
		{"command": "x", "cap_add": []any{"all"}},
	} {
		require.NoError(t, d.Validate(&drover.Task{Driver: Exec, Config: config}))
	}
	d = NewExec(Config{Sandbox: sandbox.New(sandbox.Config{}), HostIPC: true, AllowCaps: []string{"all"}})
	require.NoError(t, d.Validate(&drover.Task{Driver: Exec, Config: map[string]any{
		"command": "x", "ipc_mode": "host", "cap_add": []any{"net_admin"},
	}}))
}

// TestDeniedUsers: also the one that a task gets which names nobody.
func TestDeniedUsers(t *testing.T) {
	t.Parallel()
	deny := func(c *Config) {
		c.DeniedUIDs, c.DeniedGIDs = validation.IDs{{0, 0}, {65534, 65534}}, validation.IDs{{1, 1}}
	}
	b := newBench(t, NewExec, deny)
	for user, says := range map[string]string{
		"": `"nobody" has the id 65534, which this node denies (denied_host_uids)`, "root": "denied_host_uids", "0": "denied_host_uids",
		"daemon": `"daemon" is in the group 1, which this node denies (denied_host_gids)`, "nosuchuser": "unknown user",
	} {
		spec := drivertestSpec(t, b, "/bin/true")
		spec.User = user
		_, err := b.Start(t.Context(), spec)
		var start *driver.StartError
		require.ErrorAs(t, err, &start, user)
		require.False(t, start.Recoverable)
		require.ErrorContains(t, err, says)
	}
	exit, out := b.run(t, sh("id -u"), func(s *driver.Spec) { s.User = "2" })
	require.Zero(t, exit.Code)
	require.Equal(t, "2\n", out)
}

// TestHostIPC: where the node gives leave a task sees the machine's System V segments, and else none.
func TestHostIPC(t *testing.T) {
	t.Parallel()
	space, err := os.Readlink("/proc/self/ns/ipc")
	require.NoError(t, err)
	b := newBench(t, NewExec, func(c *Config) { c.HostIPC = true })
	_, out := b.run(t, sh("readlink /proc/self/ns/ipc"))
	require.Equal(t, space+"\n", out)
	private := sh("readlink /proc/self/ns/ipc")
	private["ipc_mode"] = "private"
	_, out = b.run(t, private)
	require.NotEqual(t, space+"\n", out)
}

// TestChosenTrees: nothing of the machine is there but what chroot_env names.
func TestChosenTrees(t *testing.T) {
	t.Parallel()
	app := t.TempDir()
	require.NoError(t, os.Chmod(app, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(app, "file"), []byte("mine\n"), 0o644))
	trees := map[string]string{app: "/opt/app", "/usr": "/usr"}
	for _, link := range []string{"/bin", "/lib", "/lib64"} {
		trees[link] = link
	}
	b := newBench(t, NewExec, func(c *Config) { c.Trees = trees })
	exit, out := b.run(t, sh("cat /opt/app/file; echo x > /opt/app/file; ls /etc/debian_version; id -un"))
	require.Zero(t, exit.Code, out)
	require.Contains(t, out, "mine\n")
	require.Contains(t, out, "Read-only file system")
	require.Contains(t, out, "No such file")
	require.Contains(t, out, "nobody\n", "a made up passwd has him")
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	b := newBench(t, NewExec)
	info := b.Fingerprint(t.Context())
	require.True(t, info.Healthy, info.HealthDescription)
	require.Equal(t, "1", info.Attributes["driver.exec"])
	require.NotContains(t, info.Attributes, "driver.sandbox", "that is told by the driver sandbox")
}
