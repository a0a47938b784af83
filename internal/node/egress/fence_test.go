package egress

import (
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/programtest"
)

// fenceOf is a fence of a device that no machine has, with a firewall that was found so.
func fenceOf(got found, err error) *Fence {
	f := New(Config{
		Name: "drover-no-such-device", Subnet: netip.MustParsePrefix("172.27.64.0/20"), Outward: true, Policy: Default(),
		Log: slog.New(slog.DiscardHandler),
	})
	f.find = func() (found, error) { return got, err }
	return f
}

func TestAMachineWithoutAFirewall(t *testing.T) {
	t.Parallel()
	f := fenceOf(found{}, errors.New("nft is not installed"))
	require.Equal(t, drover.Unavailable, drover.CodeOf(f.Set()))
	require.Equal(t, drover.Unavailable, drover.CodeOf(f.Remove()))
	require.Empty(t, f.Weaker(), "Missing says it")
	require.False(t, f.Publishes())
	if os.Geteuid() == 0 {
		require.Equal(t, "nft is not installed", f.Missing())
	}
}

func TestWhatAKernelLacksIsSaid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		features
		weaker string
	}{
		{features{count: true, rate: true, reject: true, socket: true, ports: true}, ""},
		{features{count: true, rate: true, socket: true, ports: true}, ""}, // programs wait, but nothing is open
		{features{count: true, socket: true, ports: true}, "nft_limit"},
		{features{rate: true, socket: true, ports: true}, "nft_connlimit"},
		{features{count: true, rate: true, ports: true}, "nft_socket"},
		{features{count: true, rate: true, socket: true}, "family bridge"},
	} {
		f := fenceOf(found{firewallNFT, c.features}, nil)
		weaker := f.Weaker()
		require.Equal(t, c.socket, f.Publishes())
		require.Equal(t, c.weaker == "", weaker == "", "%+v", c)
		require.Contains(t, weaker, c.weaker)
		require.LessOrEqual(t, strings.Count(weaker, " does not "), 1, weaker)
	}
}

// TestTheMarkIsNobodyElses: answers of published sockets carry it through the machine's rules.
func TestTheMarkIsNobodyElses(t *testing.T) {
	t.Parallel()
	for what, bits := range map[string]uint32{
		"transparent proxies": 0x1, "the cloud's CNI": 0x80, "Cilium": 0xf00, "portmap of CNI, and netavark": 0x2000,
		"Kubernetes": 0xc000, "Calico, Tailscale and Weave": 0xffff0000,
	} {
		require.Zero(t, Mark&bits, what)
	}
}

// record puts programs into the PATH that write down how they were called, and what they read.
func record(t *testing.T, programs map[string]string) (calls func() []string) {
	t.Helper()
	bin := t.TempDir()
	log := filepath.Join(bin, "log")
	for name, then := range programs {
		text := "#!/bin/sh\necho " + name + " \"$@\" >>" + log + "\n" + then
		programtest.Write(t, filepath.Join(bin, name), []byte(text))
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	return func() []string {
		data, err := os.ReadFile(log)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		require.NoError(t, err)
		require.NoError(t, os.Remove(log))
		return strings.Split(strings.TrimSpace(string(data)), "\n")
	}
}

const all = "drover-no-such-device"

// full are all features.
var full = features{count: true, rate: true, reject: true, socket: true, ports: true} // a constant

// listed is how Fence looks what the kernel made of its rules.
var listed = []string{"nft -t list table inet " + all, "nft -t list table bridge " + all, "iptables -w -S FORWARD"} // a constant

// TestNFTReplacesItsTable: and lets its packets by where Docker drops those of all others.
func TestNFTReplacesItsTable(t *testing.T) {
	calls := record(t, map[string]string{
		"nft": "cat >/dev/null", "iptables": `case "$*" in *-S*) echo "-P FORWARD DROP";; esac`,
	})
	f := fenceOf(found{firewallNFT, full}, nil)
	require.NoError(t, f.Set())
	require.Equal(t, append([]string{
		"nft -f -", "iptables -w -S FORWARD", "iptables -w -I FORWARD -i " + all + " -j ACCEPT",
		"iptables -w -I FORWARD -o " + all + " -j ACCEPT",
	}, listed...), calls())
	require.NoError(t, f.Remove())
	require.Equal(t, []string{"iptables -w -S FORWARD", "nft -f -"}, calls(), "no rule of ours was there")
}

func TestNFTLeavesAnOpenMachineAlone(t *testing.T) {
	calls := record(t, map[string]string{
		"nft": "cat >/dev/null", "iptables": `case "$*" in *-S*) echo "-P FORWARD ACCEPT";; esac`,
	})
	require.NoError(t, fenceOf(found{firewallNFT, features{}}, nil).Set())
	require.Equal(t, append([]string{"nft -f -", "iptables -w -S FORWARD"}, listed...), calls())
}

func TestRulesThatAreRefused(t *testing.T) {
	record(t, map[string]string{"nft": "cat >/dev/null; echo 'Error: syntax error' >&2; exit 1"})
	err := fenceOf(found{firewallNFT, features{}}, nil).Set()
	require.ErrorContains(t, err, "nft: exit status 1: Error: syntax error")
}

// TestIPTablesCallsItsChainsOnce: -C says whether a chain is called already.
func TestIPTablesCallsItsChainsOnce(t *testing.T) {
	calls := record(t, map[string]string{
		"iptables-restore": "cat >/dev/null", "iptables": `case "$*" in *"-C FORWARD"*) exit 1;; esac`,
	})
	f := fenceOf(found{firewallIPTables, full}, nil)
	require.NoError(t, f.Set())
	require.Equal(t, []string{
		"iptables-restore -w --noflush",
		"iptables -w -t filter -C INPUT -i " + all + " -j " + all + "-in",
		"iptables -w -t filter -C FORWARD -i " + all + " -j " + all + "-fwd",
		"iptables -w -t filter -I FORWARD -i " + all + " -j " + all + "-fwd",
		"iptables -w -t filter -C FORWARD -o " + all + " -j " + all + "-fwd",
		"iptables -w -t filter -I FORWARD -o " + all + " -j " + all + "-fwd",
		"iptables -w -t nat -C POSTROUTING -j " + all + "-nat",
		"iptables -w -t filter -S", "iptables -w -t nat -S",
	}, calls())
}

// TestRulesThatSomebodyElseChanged are seen by how the kernel lists them: what it adds by itself to what it was told does not count.
func TestRulesThatSomebodyElseChanged(t *testing.T) {
	says := filepath.Join(t.TempDir(), "says")
	require.NoError(t, os.WriteFile(says, []byte("table {}"), 0o600))
	record(t, map[string]string{"nft": `case "$*" in *list*) cat ` + says + `;; *) cat >/dev/null;; esac`, "iptables": ""})
	f := fenceOf(found{firewallNFT, full}, nil)
	require.NoError(t, f.Set())
	require.False(t, f.Changed())
	require.NoError(t, os.WriteFile(says, []byte("table { open }"), 0o600))
	require.True(t, f.Changed())
	require.NoError(t, f.Set())
	require.False(t, f.Changed())
	require.NoError(t, os.Remove(says))
	require.True(t, f.Changed(), "they are gone")
}

// TestIPTablesRemovesAllThatIsThere, whatever of it is missing.
func TestIPTablesRemovesAllThatIsThere(t *testing.T) {
	calls := record(t, map[string]string{"iptables": `case "$*" in *-D*) echo "no such rule" >&2; exit 1;; esac`})
	err := fenceOf(found{firewallIPTables, features{}}, nil).Remove()
	require.ErrorContains(t, err, "no such rule")
	got := strings.Join(calls(), "\n")
	for _, chain := range []string{"-in", "-fwd", "-out", "-new", "-pub"} {
		require.Contains(t, got, "iptables -w -F "+all+chain)
		require.Contains(t, got, "iptables -w -X "+all+chain)
	}
	require.Contains(t, got, "iptables -w -t nat -X "+all+"-nat")
}

// TestDistinctNetworksAreTheSame: no address is lost or added, and none is in two of them.
func TestDistinctNetworksAreTheSame(t *testing.T) {
	t.Parallel()
	within := func(list []netip.Prefix, a netip.Addr) (n int) {
		for _, p := range list {
			if p.Contains(a) {
				n++
			}
		}
		return n
	}
	rapid.Check(t, func(t *rapid.T) {
		address := rapid.Custom(func(t *rapid.T) netip.Addr {
			b := rapid.SliceOfN(rapid.Byte(), 2, 2).Draw(t, "bytes")
			return netip.AddrFrom4([4]byte{10, b[0] & 3, b[1] & 3, 0})
		})
		list := rapid.SliceOf(rapid.Custom(func(t *rapid.T) netip.Prefix {
			return netip.PrefixFrom(address.Draw(t, "address"), rapid.IntRange(6, 32).Draw(t, "bits"))
		})).Draw(t, "list")
		out := distinct(list)
		for range 20 {
			a := address.Draw(t, "probe")
			require.LessOrEqual(t, within(out, a), 1)
			require.Equal(t, within(list, a) > 0, within(out, a) == 1, a)
		}
	})
}

func TestTheResolversOfAPolicy(t *testing.T) {
	t.Parallel()
	p := Policy{Resolvers: func() []netip.Addr {
		return []netip.Addr{netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("fd00::1")}
	}}
	require.Equal(t, prefixes("10.0.0.2/32", "fd00::1/128"), p.resolvers(), "each once")
	for _, a := range Resolvers() {
		require.False(t, a.IsLoopback(), "a guest's own loopback has no name server")
	}
	_, err := os.Stat(filepath.Dir(ResolverFile()))
	require.NoError(t, err)
}
