package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// reacher prints what becomes of a connection to each address:port of its arguments, one line each.
const reacher = `
import concurrent.futures, socket, sys
def reach(to):
    host, port = to.rsplit("/", 1)
    try:
        socket.create_connection((host, int(port)), 5)
        return to + " open"
    except OSError:
        return to + " closed"
for line in concurrent.futures.ThreadPoolExecutor(len(sys.argv)).map(reach, sys.argv[1:]):
    print(line)
`

// TestACNINetwork: groups in a network of the CNI project's plugins find each other there and are found at the machine's port, and neither
// the machine nor a link-local address is open to them. Nothing of them is left.
func TestACNINetwork(t *testing.T) {
	t.Parallel()
	require.DirExists(t, "/usr/lib/cni", "the tests need the package containernetworking-plugins: make deps")
	dir, device := t.TempDir(), fmt.Sprintf("dce%d", os.Getpid()%1_000_000)
	n := os.Getpid() % 250
	four, six := fmt.Sprintf("10.202.%d.", n), fmt.Sprintf("fd77:202:%x::", n)
	leases := filepath.Join(dir, "ipam")
	conf := fmt.Sprintf(`{"cniVersion": "1.0.0", "name": "mine", "plugins": [
		{"type": "bridge", "bridge": %q, "isGateway": true, "isDefaultGateway": true, "ipam": {"type": "host-local", "dataDir": %q,
		"ranges": [[{"subnet": "%s0/24"}], [{"subnet": "%s/64"}]]}},
		{"type": "portmap", "capabilities": {"portMappings": true}}]}`, device, leases, four, six)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mine.conflist"), []byte(conf), 0o644))
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", device).Run() })
	a := start(t, append([]string{"-dev"},
		config(t, "", clientBlock(fmt.Sprintf("cni_path = \"/usr/lib/cni\"\ncni_config_dir = %q", dir)))...)...)
	c := a.nomad()
	inside := func(id, kind string, port *api.Port, command string, args ...string) {
		job := rawJob(id, kind, command, args...)
		network := &api.NetworkResource{Mode: "cni/mine"}
		if port != nil {
			network.DynamicPorts = []api.Port{*port}
		}
		job.TaskGroups[0].Networks = []*api.NetworkResource{network}
		_, _, err := c.Jobs().Register(job, nil)
		require.NoError(t, err)
	}
	inside("web", "service", &api.Port{Label: "http", To: 8080}, "/usr/bin/python3", "-m", "http.server", "--bind", "::", "8080")
	web, _, err := c.Allocations().Info(allocation(t, c, "web", "running").ID, nil)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(web.NetworkStatus.Address, four), web.NetworkStatus.Address)
	port := web.AllocatedResources.Shared.Ports[0]
	eventually(t, "the port of the machine", func() (bool, string) {
		answer, err := (&http.Client{Timeout: time.Second}).Get(fmt.Sprintf("http://%s:%d/", port.HostIP, port.Value))
		if err != nil {
			return false, err.Error()
		}
		return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK, answer.Status
	})

	listener, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	defer listener.Close()
	open := listener.Addr().(*net.TCPAddr).Port
	const linkLocal = "169.254.66.66"
	require.NoError(t, exec.Command("ip", "addr", "add", linkLocal+"/32", "dev", device).Run())
	neighbours := []string{web.NetworkStatus.Address + "/8080", web.NetworkStatus.AddressIPv6 + "/8080"}
	closed := []string{
		fmt.Sprintf("%s1/%d", four, open), fmt.Sprintf("%s1/%d", six, open), fmt.Sprintf("%s/%d", port.HostIP, open),
		fmt.Sprintf("%s/%d", linkLocal, open),
	}
	inside("probe", "batch", nil, "/usr/bin/python3", append([]string{"-c", reacher}, append(neighbours, closed...)...)...)
	want := ""
	for _, at := range neighbours {
		want += at + " open\n"
	}
	for _, at := range closed {
		want += at + " closed\n"
	}
	require.Equal(t, want, logs(t, c, allocation(t, c, "probe", "complete").ID, "stdout"))

	_, _, err = c.Jobs().Deregister("web", true, nil)
	require.NoError(t, err)
	eventually(t, "nothing of the network is left", func() (bool, string) {
		left, err := filepath.Glob(filepath.Join(leases, "mine", "[0-9f]*"))
		return err == nil && len(left) == 0, fmt.Sprint(left, err)
	})
}
