package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
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
	"github.com/vishvananda/netns"

	"github.com/drover-project/drover/internal/e2e/program"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/node/egress"
)

// teller is a server at all addresses of its namespace that tells what it sees of its network.
const teller = `
import http.server, json, os, socket
class Teller(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = json.dumps({"host": socket.gethostname(), "resolver": open("/etc/resolv.conf").read(), "env": dict(os.environ)})
        self.send_response(200); self.end_headers(); self.wfile.write(text.encode())
    def log_message(self, *args): pass
class Server(http.server.ThreadingHTTPServer): address_family = socket.AF_INET6
Server(("::", int(os.environ.get("AT", "8080"))), Teller).serve_forever()`

// space is a network namespace of a test.
type space string

func newSpace(t *testing.T) space {
	t.Helper()
	s := space("drn" + id.Random{}.New()[:6])
	ranOK(t, "ip", "netns", "add", string(s))
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", string(s)).Run() })
	s.ip(t, "link set lo up")
	return s
}

func ranOK(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	require.NoError(t, err, "%s %v: %s", name, args, out)
	return string(out)
}

func (s space) ip(t *testing.T, args string) string {
	t.Helper()
	return ranOK(t, "ip", append([]string{"-n", string(s)}, strings.Fields(args)...)...)
}

// within calls do on a thread that is in the namespace.
func (s space) within(do func() error) error {
	return egress.OnThread(func() error {
		to, err := netns.GetFromName(string(s))
		if err != nil {
			return err
		}
		defer to.Close()
		if err := netns.Set(to); err != nil {
			return err
		}
		return do()
	})
}

// client asks from the namespace.
func (s space) client() *http.Client {
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (c net.Conn, err error) {
			return c, s.within(func() error { c, err = new(net.Dialer).DialContext(ctx, network, address); return err })
		},
	}}
}

// told is what a teller says that is asked from the namespace.
func (s space) told(t *testing.T, at string) (told struct {
	Host, Resolver string
	Env            map[string]string
},
) {
	t.Helper()
	eventually(t, "an answer at "+at, func() (bool, string) {
		answer, err := s.client().Get("http://" + at + "/")
		if err != nil {
			return false, err.Error()
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		return err == nil && json.Unmarshal(body, &told) == nil, string(body)
	})
	return told
}

// bridgedAgent starts an agent in a namespace with two interfaces, which another namespace is behind.
func bridgedAgent(t *testing.T) (inside, outside space, c *api.Client) {
	t.Helper()
	inside, outside = newSpace(t), newSpace(t)
	for i, name := range []string{"lan0", "lan1"} {
		inside.ip(t, "link add "+name+" type veth peer name "+name+" netns "+string(outside))
		for k, s := range []space{inside, outside} {
			s.ip(t, fmt.Sprintf("addr add 10.203.%d.%d/24 dev %s", i, k+1, name))
			s.ip(t, fmt.Sprintf("addr add fd77:%d::%d/64 dev %s nodad", i, k+1, name))
			s.ip(t, "link set "+name+" up")
		}
	}
	enter := filepath.Join(t.TempDir(), "enter")
	text := fmt.Sprintf("#!/bin/sh\nexec nsenter --net=/run/netns/%s %s \"$@\"\n", inside, program.Binary)
	require.NoError(t, os.WriteFile(enter, []byte(text), 0o700))
	a := program.LaunchOf(t, enter, append([]string{"-dev"}, config(t, "", `
dns {
  port      = 0
  bridge    = true
  recursors = []
}
`+clientBlock(`network_interface = "lan0"
bridge_network_name = "mine"
bridge_network_subnet = "172.29.16.0/24"
bridge_network_subnet_ipv6 = "fd00:29::/64"
host_network "second" {
  interface = "lan1"
  cidr      = "10.0.0.0/8"
}
host_network "six" {
  cidr = "fd77::/64"
}`))...)...)
	require.NotEmpty(t, a.Addr, a.Output())
	c, err := api.NewClient(&api.Config{Address: "http://" + a.Addr, HttpClient: inside.client()})
	require.NoError(t, err)
	return inside, outside, c
}

// networked is a job of one task of the sandbox with a network.
func networked(id, kind, script string, n *api.NetworkResource, args ...string) *api.Job {
	j := rawJob(id, kind, "/usr/bin/python3", append([]string{"-uc", script}, args...)...)
	j.TaskGroups[0].Tasks[0].Driver = "sandbox"
	j.TaskGroups[0].Networks = []*api.NetworkResource{n}
	return j
}

// TestTheKeysOfANetwork: a machine of its own with two interfaces of both families. Each port is at the address that its host network
// says, from outside; inside a group finds others by their names and published ports, and nothing else.
func TestTheKeysOfANetwork(t *testing.T) {
	t.Parallel()
	inside, outside, c := bridgedAgent(t)
	register := func(j *api.Job) {
		t.Helper()
		_, _, err := c.Jobs().Register(j, nil)
		require.NoError(t, err)
	}
	web := networked("web", "service", teller, &api.NetworkResource{
		Mode: "bridge", Hostname: "web-${NOMAD_ALLOC_INDEX}",
		DNS:           &api.DNSConfig{Servers: []string{"192.0.2.53"}, Searches: []string{"one.test"}, Options: []string{"ndots:3"}},
		DynamicPorts:  []api.Port{{Label: "http", To: 8080}, {Label: "six", To: 8080, HostNetwork: "six"}},
		ReservedPorts: []api.Port{{Label: "fixed", Value: 8111, To: 8080}, {Label: "second", Value: 8113, To: 8080, HostNetwork: "second"}},
	})
	web.TaskGroups[0].Services = []*api.Service{
		{Name: "web", PortLabel: "fixed"}, {Name: "web-six", PortLabel: "six"}, {Name: "web-own", PortLabel: "http", AddressMode: "alloc_ipv6"},
	}
	register(web)
	// Its two tasks share a namespace. The two of the next job listen at one port of the machine.
	twin := networked("twin", "service", teller, &api.NetworkResource{Mode: "bridge", DynamicPorts: []api.Port{{Label: "http", To: 8080}}})
	second := rawJob("", "", "/bin/sleep", "1000").TaskGroups[0].Tasks[0]
	second.Name = "second"
	twin.TaskGroups[0].AddTask(second)
	register(twin)
	same := rawJob("same", "service", "/bin/sleep", "1000")
	same.TaskGroups[0].Count = new(2)
	same.TaskGroups[0].Networks = []*api.NetworkResource{{
		Mode: "host", ReservedPorts: []api.Port{{Label: "p", Value: 8112, IgnoreCollision: true}},
	}}
	register(same)

	info := func(job string) (*api.Allocation, map[string]api.PortMapping) {
		t.Helper()
		a, _, err := c.Allocations().Info(allocation(t, c, job, "running").ID, nil)
		require.NoError(t, err)
		ports := map[string]api.PortMapping{}
		for _, p := range a.AllocatedResources.Shared.Ports {
			ports[p.Label] = p
		}
		return a, ports
	}
	alloc, ports := info("web")
	require.Regexp(t, `^172\.29\.16\.`, alloc.NetworkStatus.Address)
	require.Regexp(t, `^fd00:29::`, alloc.NetworkStatus.AddressIPv6)
	at := func(p api.PortMapping) string { return net.JoinHostPort(p.HostIP, fmt.Sprint(p.Value)) }
	for label, host := range map[string]string{"http": "10.203.0.1", "fixed": "10.203.0.1", "second": "10.203.1.1", "six": "fd77::1"} {
		require.Equal(t, host, ports[label].HostIP, label)
		told := outside.told(t, at(ports[label]))
		require.Equal(t, "web-0", told.Host)
		for _, line := range []string{"nameserver 192.0.2.53\n", "search one.test\n", "options ndots:3\n"} {
			require.Contains(t, told.Resolver, line)
		}
		require.Equal(t, alloc.NetworkStatus.Address+":8080", told.Env["NOMAD_ALLOC_ADDR_"+label])
		require.Equal(t, "["+alloc.NetworkStatus.AddressIPv6+"]:8080", told.Env["NOMAD_ALLOC_ADDR6_"+label])
		require.Equal(t, "8080", told.Env["NOMAD_PORT_"+label])
	}
	_, err := outside.client().Get(fmt.Sprintf("http://10.203.1.1:%d/", ports["http"].Value))
	require.Error(t, err, "a port is open at its own address only")
	other, otherPorts := info("twin")
	require.Equal(t, "nameserver 172.29.16.1\n", outside.told(t, at(otherPorts["http"])).Resolver)
	require.NotEmpty(t, other.NetworkStatus.AddressIPv6)
	eventually(t, "both listeners of one port", func() (bool, string) {
		list, _, err := c.Jobs().Allocations("same", false, nil)
		return err == nil && len(list) == 2 && list[0].ClientStatus == "running" && list[1].ClientStatus == "running", fmt.Sprint(list, err)
	})
	own, _, err := c.Services().Get("web-own", nil)
	require.NoError(t, err)
	require.Len(t, own, 1)
	require.Equal(t, alloc.NetworkStatus.AddressIPv6, own[0].Address)

	probe(t, c, inside, outside, alloc, ports)
	for _, job := range []string{"web", "twin", "same", "probe"} {
		_, _, err := c.Jobs().Deregister(job, true, nil)
		require.NoError(t, err)
	}
	eventually(t, "nothing of the guests is left", func() (bool, string) {
		left := inside.ip(t, "-o link show type veth") + inside.ip(t, "-6 neigh show nud permanent")
		return !strings.Contains(left, "master mine") && !strings.Contains(left, "fd00:29::"), left
	})
}

// probe runs a job in the namespace that tries what it can reach, by name and by address, of both families.
func probe(t *testing.T, c *api.Client, inside, outside space, web *api.Allocation, ports map[string]api.PortMapping) {
	t.Helper()
	listen := func(s space) (port int) {
		t.Helper()
		var l net.Listener
		require.NoError(t, s.within(func() (err error) { l, err = net.Listen("tcp", ":0"); return err }))
		t.Cleanup(func() { _ = l.Close() })
		return l.Addr().(*net.TCPAddr).Port
	}
	machine, behind := listen(inside), listen(outside)
	inside.ip(t, "addr add 169.254.66.66/32 dev lan0")
	open := []string{
		"web.service.drover/8111", fmt.Sprintf("web-six.service.drover/%d", ports["six"].Value), "10.203.1.1/8113",
		fmt.Sprintf("10.203.0.1/%d", ports["http"].Value), fmt.Sprintf("10.203.0.2/%d", behind), fmt.Sprintf("fd77::2/%d", behind),
	}
	closed := []string{
		web.NetworkStatus.Address + "/8080", web.NetworkStatus.AddressIPv6 + "/8080", fmt.Sprintf("169.254.66.66/%d", machine),
	}
	for _, address := range []string{"172.29.16.1", "fd00:29::1", "10.203.0.1", "fd77::1"} {
		closed = append(closed, fmt.Sprintf("%s/%d", address, machine))
	}
	job := networked("probe", "batch", reacher, &api.NetworkResource{Mode: "bridge"}, append(open, closed...)...)
	_, _, err := c.Jobs().Register(job, nil)
	require.NoError(t, err)
	want := ""
	for _, to := range open {
		want += to + " open\n"
	}
	for _, to := range closed {
		want += to + " closed\n"
	}
	require.Equal(t, want, logs(t, c, allocation(t, c, "probe", "complete").ID, "stdout"))
}
