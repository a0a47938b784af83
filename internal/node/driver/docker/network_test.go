package docker

import (
	"io"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/network"
)

// TestPortsArePublished on a network of docker's own, whose address the task has.
func TestPortsArePublished(t *testing.T) {
	t.Parallel()
	name := "drv" + id.Random{}.New()[:8]
	docker := func(args ...string) {
		out, err := exec.Command("docker", append([]string{"-H", endpoint, "network"}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	docker("create", "-o", "com.docker.network.bridge.name="+name, name)
	t.Cleanup(func() { docker("rm", name) })
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := free.Addr().(*net.TCPAddr).Port
	require.NoError(t, free.Close())
	b := newBench(t, func(c *Config) { c.AllowNetworks = []string{"drv*"} })
	spec := b.spec(t, script2("mkdir /w; echo served > /w/index.html; exec httpd -f -p 80 -h /w", map[string]any{
		"network_mode": name, "ports": []any{"http"}, "network_aliases": []any{"web"},
	}))
	spec.Ports = []network.PortMapping{{Label: "http", Value: port, To: 80, HostIP: "127.0.0.1"}}
	h := b.run(t, spec)
	require.NotNil(t, h.Network())
	require.NotEmpty(t, h.Network().Address)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 2 * time.Second}
	require.Eventually(t, func() bool {
		r, err := client.Get("http://127.0.0.1:" + strconv.Itoa(port) + "/")
		if err != nil {
			return false
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		return err == nil && string(body) == "served\n"
	}, patience, tick)
	require.NoError(t, h.Destroy(t.Context()))
}
