package chroot

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
	"github.com/drover-project/drover/internal/node/driver/sandbox"
	"github.com/drover-project/drover/internal/programtest"
)

// drivertestSpec is a task of one program.
func drivertestSpec(t *testing.T, b *bench, command string) driver.Spec {
	t.Helper()
	return drivertest.Spec(t, b.dir, map[string]any{"command": command})
}

const fakeVersion = `Picked up JAVA_TOOL_OPTIONS: -Dx
openjdk version "17.0.15" 2025-04-15
OpenJDK Runtime Environment (build 17.0.15+6-Debian-1deb12u1)
OpenJDK 64-Bit Server VM (build 17.0.15+6-Debian-1deb12u1, mixed mode, sharing)
`

// withFakeJava has a script in place of java, which prints what it was called with.
func withFakeJava(t *testing.T) (path string, change func(*Config)) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	path = filepath.Join(dir, "java")
	programtest.Write(t, path, []byte("#!/bin/sh\n[ \"$1\" = -version ] && { cat >&2 <<'E'\n"+
		fakeVersion+"E\nexit; }\necho \"$@\"; pwd; id -un\n"))
	return path, func(c *Config) {
		c.Path = dir
		c.Trees = map[string]string{dir: "/opt/java", "/usr": "/usr", "/bin": "/bin", "/lib": "/lib", "/lib64": "/lib64", "/etc": "/etc"}
	}
}

func TestJavaCommands(t *testing.T) {
	t.Parallel()
	_, change := withFakeJava(t)
	b := newBench(t, NewJava, change)
	info := b.Fingerprint(t.Context())
	require.True(t, info.Healthy, info.HealthDescription)
	require.Equal(t, "1", info.Attributes["driver.java"])
	require.Equal(t, "17.0.15", info.Attributes["driver.java.version"])
	require.Equal(t, "OpenJDK Runtime Environment (build 17.0.15+6-Debian-1deb12u1)", info.Attributes["driver.java.runtime"])
	require.Equal(t, "OpenJDK 64-Bit Server VM (build 17.0.15+6-Debian-1deb12u1, mixed mode, sharing)", info.Attributes["driver.java.vm"])
	for _, c := range []struct {
		config map[string]any
		want   string
	}{
		{
			map[string]any{"jar_path": "local/a.jar", "args": []any{"x", "y"}, "jvm_options": []any{"-Xmx64m"}},
			"-Xmx64m -jar local/a.jar x y\n/\nnobody\n",
		},
		{map[string]any{"class": "Main", "class_path": "/local", "work_dir": "/tmp"}, "-cp /local Main\n/tmp\nnobody\n"},
	} {
		exit, out := b.run(t, c.config)
		require.Zero(t, exit.Code, out)
		require.Equal(t, c.want, out)
	}
}

func TestProblemsOfAJavaConfiguration(t *testing.T) {
	t.Parallel()
	d := NewJava(Config{Sandbox: sandbox.New(sandbox.Config{})})
	for says, config := range map[string]map[string]any{
		"jar_path: a java task needs a jar, or a class": {},
		`unknown key "command"`:                         {"jar_path": "x", "command": "y"},
		"jvm_options: must be a list of strings":        {"jar_path": "x", "jvm_options": "-Xmx1m"},
		"pid_mode: host is not to be had":               {"jar_path": "x", "pid_mode": "host"},
	} {
		err := d.Validate(&drover.Task{Driver: Java, Config: config})
		require.Equal(t, drover.Invalid, drover.CodeOf(err), says)
		require.ErrorContains(t, err, says)
	}
	require.NoError(t, d.Validate(&drover.Task{Driver: Java, Config: map[string]any{"jar_path": "x"}}))
}

// TestNoJava: the node says why it has no java, in words for who waits for a placement.
func TestNoJava(t *testing.T) {
	t.Parallel()
	b := newBench(t, NewJava, func(c *Config) { c.Path = t.TempDir() })
	info := b.Fingerprint(t.Context())
	require.False(t, info.Healthy)
	require.False(t, info.Detected)
	require.Contains(t, info.HealthDescription, "there is no java on the agent's PATH")

	path, hidden := withFakeJava(t)
	b = newBench(t, NewJava, hidden, func(c *Config) { delete(c.Trees, filepath.Dir(path)) })
	require.Contains(t, b.Fingerprint(t.Context()).HealthDescription, "tasks do not see java, which is "+path)

	programtest.Write(t, path, []byte("#!/bin/sh\nexit 3\n"))
	b = newBench(t, NewJava, hidden)
	require.Contains(t, b.Fingerprint(t.Context()).HealthDescription, "-version: exit status 3")
}
