package qemu

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
	"github.com/drover-project/drover/internal/node/driver/sandbox"
	"github.com/drover-project/drover/internal/node/image"
	"github.com/drover-project/drover/internal/node/supervisor"
	"github.com/drover-project/drover/internal/programtest"
	"github.com/drover-project/drover/internal/sharetest"
)

func TestMain(m *testing.M) { drivertest.Main(m) }

// fakeQemu prints what it was called with, and ends when its monitor is told so.
const fakeQemu = `#!/usr/bin/python3
import os, socket, sys, time
if sys.argv[1:] == ["-version"]:
    print("QEMU emulator version 7.2.17 (Debian 1:7.2+dfsg-7+deb12u14)")
    sys.exit()
print(" ".join(sys.argv[1:]), flush=True)
for path in ["/etc/shadow", "/etc/passwd"]:
    try:
        open(path); print("reads", path, flush=True)
    except OSError: pass
args = dict(zip(sys.argv, sys.argv[1:]))
drive = args["-drive"].split(",")[0][len("file="):]
print("image", open(drive).read(), flush=True)
if "-monitor" in args:
    s = socket.socket(socket.AF_UNIX)
    s.bind(args["-monitor"].split(",")[0][len("unix:"):])
    s.listen()
    print("ready", flush=True)
    c, _ = s.accept()
    c.sendall(b"(qemu) ")
    line = c.recv(100)
    c.sendall(line + b"(qemu) ")
    print("told", line, flush=True)
    if "deaf" in sys.argv: time.sleep(600)
    sys.exit(0)
if "sleep" in sys.argv: time.sleep(600)
`

// bench is a driver on folders of its own.
type bench struct {
	*Driver
	dir    string
	remake func() *Driver // the driver of an agent after a restart
}

// newBench returns a driver as an agent with root has it; nothing may be left at the end.
func newBench(t *testing.T, change ...func(*Config)) *bench {
	t.Helper()
	sharetest.Take(t)
	b := &bench{dir: t.TempDir()}
	require.NoError(t, os.Chmod(b.dir, 0o755))
	binary := filepath.Join(b.dir, "opt/bin/qemu-system-x86_64")
	require.NoError(t, os.MkdirAll(filepath.Dir(binary), 0o755))
	programtest.Write(t, binary, []byte(fakeQemu))
	groups, err := cgroup.New(cgroup.Config{Parent: drivertest.GroupParent(t)})
	require.NoError(t, err)
	guest, err := supervisor.Binary(b.dir)
	require.NoError(t, err)
	images := image.NewStore(image.Options{Dir: filepath.Join(b.dir, "images"), Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler)})
	b.remake = func() *Driver {
		cfg := Config{Images: images, Clock: clock.Wall{}, AllowHostNetwork: true, Binary: binary}
		cfg.Sandbox = sandbox.New(sandbox.Config{
			Dir: filepath.Join(b.dir, "sandbox"), Binary: guest, Cgroups: groups, Clock: clock.Wall{}, CoreMHz: 1000,
			Log: slog.New(slog.DiscardHandler), Images: images,
		})
		for _, c := range change {
			c(&cfg)
		}
		return New(cfg)
	}
	b.Driver = b.remake()
	t.Cleanup(func() {
		left, err := groups.List()
		require.NoError(t, err)
		require.Empty(t, left, "cgroups left behind")
		require.NoError(t, groups.Close(clock.Wall{}))
		states, err := filepath.Glob(filepath.Join(b.dir, "supervisor", "*", "*"))
		require.NoError(t, err)
		require.Empty(t, states, "files left behind")
	})
	return b
}

// spec is a task with an image in its folder.
func (b *bench) spec(t *testing.T, config map[string]any) driver.Spec {
	t.Helper()
	if config["image_path"] == nil {
		config["image_path"] = "local/a.img"
	}
	spec := drivertest.Spec(t, b.dir, config)
	require.NoError(t, os.WriteFile(filepath.Join(spec.Dirs.Local, "a.img"), []byte("mine"), 0o644))
	return spec
}

// printed is a task's output.
func printed(t *testing.T, spec *driver.Spec) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(spec.Log.Dir, "t.std*"))
	require.NoError(t, err)
	text := ""
	for _, n := range names {
		data, err := os.ReadFile(n)
		require.NoError(t, err)
		text += string(data)
	}
	return text
}
