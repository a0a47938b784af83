package groupnet

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/cni"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
	"github.com/drover-project/drover/internal/programtest"
)

// link is a network of the CNI project's bridge with both families, in which the machine has its first addresses, and a link-local one as
// clouds' metadata services have.
type link struct {
	*bench
	device, four, six string // the machine's addresses
}

const linkLocal = "169.254.77.77"

func newLink(t *testing.T) *link {
	t.Helper()
	b := newBench(t)
	dir, err := os.MkdirTemp("", "cni")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	subnet := drivertest.Subnet(28)
	id := subnet.Addr().As4()
	six := fmt.Sprintf("fd77:%x:%x::", id[1], id[2])
	l := &link{bench: b, device: fmt.Sprintf("dcl%d-%d", os.Getpid()%100000, id[2]), four: subnet.Addr().Next().String(), six: six + "1"}
	conf := fmt.Sprintf(`{"cniVersion": "1.0.0", "name": "mine", "plugins": [
		{"type": "bridge", "bridge": %q, "isGateway": true, "isDefaultGateway": true, "ipam": {"type": "host-local", "dataDir": %q,
		"ranges": [[{"subnet": %q}], [{"subnet": "%s/64"}]]}}]}`, l.device, filepath.Join(dir, "ipam"), subnet, six)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mine.conflist"), []byte(conf), 0o644))
	b.cfg.CNI = cni.New(cni.Config{
		Path: []string{projects}, ConfigDir: dir, CacheDir: filepath.Join(dir, "cache"), Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() { require.NoError(t, exec.Command("ip", "link", "del", l.device).Run()) })
	return l
}

// listen has the machine listen on a port of all its addresses.
func listen(t *testing.T) (port string) {
	t.Helper()
	s, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return strconv.Itoa(s.Addr().(*net.TCPAddr).Port)
}

// reaches says what becomes of a connection from the namespace: "open", or the error's name.
func reaches(t *testing.T, namespace, address, port string) string {
	t.Helper()
	return strings.TrimSpace(in(t, namespace, "python3", "-c", `
import socket
try:
	socket.create_connection(("`+address+`", `+port+`), 3)
	print("open")
except OSError as e:
	print(type(e).__name__, e.errno)`))
}

// TestACNINetworkHasTheRulesOfTheBridge: a guest in one reached all that listens on the machine, and a cloud's metadata.
func TestACNINetworkHasTheRulesOfTheBridge(t *testing.T) {
	t.Parallel()
	b := newLink(t)
	alloc, g := cniGroup("raw_exec")
	ns, err := b.Join(t.Context(), alloc, g, g.Tasks[0])
	require.NoError(t, err)
	other, _ := cniGroup("raw_exec")
	peer, err := b.Join(t.Context(), other, g, g.Tasks[0])
	require.NoError(t, err)
	require.NoError(t, exec.Command("ip", "addr", "add", linkLocal+"/32", "dev", b.device).Run())
	port := listen(t)
	server := exec.Command("nsenter", "--net="+peer.Path, "python3", "-m", "http.server", "--bind", "::", "80")
	require.NoError(t, server.Start())
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	for _, open := range []string{peer.Status.Address, peer.Status.AddressIPv6} {
		require.Eventually(t, func() bool { return reaches(t, ns.Path, open, "80") == "open" }, patience, tick, open)
	}
	for _, closed := range []string{b.four, b.six, linkLocal, "fe80::1%eth0"} {
		require.NotEqual(t, "open", reaches(t, ns.Path, closed, port), closed)
	}

	// Addresses that the machine gets later are closed as soon as somebody looks, also after the agent's restart.
	const later = "10.77.77.77"
	require.NoError(t, exec.Command("ip", "addr", "add", later+"/32", "dev", b.device).Run())
	require.Equal(t, "open", reaches(t, ns.Path, later, port))
	b.Look(t.Context())
	require.NotEqual(t, "open", reaches(t, ns.Path, later, port))
	in(t, ns.Path, "nft", "delete", "table", "inet", "drover")
	require.Equal(t, "open", reaches(t, ns.Path, b.four, port), "an agent of before set no rules")
	again := b.restart(t)
	require.NotEqual(t, "open", reaches(t, ns.Path, b.four, port))
	for _, a := range []*drover.Allocation{alloc, other} {
		require.NoError(t, again.Leave(t.Context(), a.ID))
		require.NoError(t, b.Leave(t.Context(), a.ID))
	}
}

// TestNoNetworkWithoutItsRules: what the plugins did is undone.
func TestNoNetworkWithoutItsRules(t *testing.T) {
	b := newCNIBench(t)
	b.bridge.Missing() // looks for the firewall while it is there
	bin := t.TempDir()
	programtest.Write(t, filepath.Join(bin, "nft"), []byte("#!/bin/sh\ncat >/dev/null; echo 'Error: no such thing' >&2; exit 1\n"))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	alloc, g := cniGroup("raw_exec")
	_, err := b.Join(t.Context(), alloc, g, g.Tasks[0])
	require.ErrorContains(t, err, "network of the group: setting the rules of egress: nft: exit status 1: Error: no such thing")
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	require.Empty(t, b.leases(t))
	require.Nil(t, b.Status(alloc.ID))
	log, err := os.ReadFile(filepath.Join(b.dir, "log"))
	require.NoError(t, err)
	require.Contains(t, string(log), "DEL ")
}

// TestTasksWithoutRightsKeepTheRules: a namespace is the machine's, so the root of a user namespace has no say in it, and no raw sockets.
func TestTasksWithoutRightsKeepTheRules(t *testing.T) {
	t.Parallel()
	b := newCNIBench(t)
	alloc, g := cniGroup("sandbox")
	ns, err := b.Join(t.Context(), alloc, g, g.Tasks[0])
	require.NoError(t, err)
	for _, try := range []string{
		"nft delete table inet drover", "ip addr add 10.0.0.9/32 dev eth0", "python3 -c 'import socket; socket.socket(17, 3)'",
	} {
		out, err := exec.Command("nsenter", "--net="+ns.Path, "unshare", "--user", "--map-root-user", "sh", "-c", try).CombinedOutput()
		require.Error(t, err, try)
		require.Contains(t, string(out), "not permitted", try)
	}
	require.Contains(t, in(t, ns.Path, "nft", "list", "tables"), "table inet drover")
}
