package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/programtest"
)

// TestNomadsQemuDriver: a job of Nomad's client for a virtual machine, by a qemu that is a script. The machine is powered down over its
// monitor, also after kill -9 of the agent; an image that is not the job's is refused.
func TestNomadsQemuDriver(t *testing.T) {
	dir := t.TempDir()
	programtest.Write(t, filepath.Join(dir, "qemu-system-x86_64"), []byte(`#!/usr/bin/python3
import socket, sys
if sys.argv[1:] == ["-version"]:
    print("QEMU emulator version 7.2.17")
    sys.exit()
args = dict(zip(sys.argv, sys.argv[1:]))
print(args["-m"], args["-drive"], args["-netdev"], flush=True)
s = socket.socket(socket.AF_UNIX)
s.bind(args["-monitor"].split(",")[0][len("unix:"):])
s.listen()
c, _ = s.accept()
print("told", c.recv(100), flush=True)
`))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	data := filepath.Join(t.TempDir(), "data")
	args := append([]string{"-server", "-client"}, config(t, data, `plugin "qemu" {
  config {
    allow_host_network = true
    args_allowlist     = ["-nodefaults"]
  }
}`)...)
	a := start(t, args...)
	t.Cleanup(func() { cleanAfter(t, args) })
	c := a.nomad()
	j := driverJob("vm", "service", "qemu", map[string]any{
		"image_path": "local/disk.img", "graceful_shutdown": true, "args": []string{"-nodefaults"}, "port_map": []map[string]any{{"http": 80}},
	})
	j.TaskGroups[0].Networks = []*api.NetworkResource{{DynamicPorts: []api.Port{{Label: "http"}}}}
	j.TaskGroups[0].Tasks[0].Templates = []*api.Template{{EmbeddedTmpl: new("a disk"), DestPath: new("local/disk.img")}}
	_, _, err := c.Jobs().Register(j, nil)
	require.NoError(t, err)
	vm := allocation(t, c, "vm", "running")
	eventually(t, "the machine's command line", func() (bool, string) {
		out := logs(t, c, vm.ID, "stdout")
		return strings.HasPrefix(out, "128M file=/local/disk.img,if=ide user,id=user.0,hostfwd=udp:"), out
	})
	a.PullThePlug()
	a = start(t, args...)
	c = a.nomad()
	require.Equal(t, vm.ID, allocation(t, c, "vm", "running").ID)
	_, _, err = c.Jobs().Deregister("vm", false, nil)
	require.NoError(t, err)
	eventually(t, "the power button", func() (bool, string) {
		out := logs(t, c, vm.ID, "stdout")
		return strings.Contains(out, "told b'system_powerdown"), out
	})
	checked, _, err := c.Jobs().Validate(driverJob("monitor", "batch", "qemu", map[string]any{
		"image_path": "local/x", "args": []string{"-monitor", "tcp::4444,server"},
	}), nil)
	require.NoError(t, err)
	require.Contains(t, checked.Error, `args: "-monitor" is not among the options that this node allows`)
}
