package egress

import (
	"flag"
	"net/netip"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestRules(t *testing.T) {
	t.Parallel()
	c := Config{
		Name: "br0", Subnet: netip.MustParsePrefix("172.27.64.0/20"), Jobs: netip.MustParsePrefix("172.27.64.0/21"), Outward: true,
		Policy: Default(),
	}
	c.Policy.Allow = prefixes("10.1.0.0/16", "10.1.2.0/24", "10.0.0.0/16", "100.100.100.200/32")
	c.Policy.Resolvers = func() []netip.Addr { return []netip.Addr{netip.MustParseAddr("10.255.255.53")} }
	r := c.Policy.rules(full)
	both := c
	both.Subnet6, both.Jobs6 = netip.MustParsePrefix("fd00:1::/64"), netip.MustParsePrefix("fd00:1::/117")
	both.Guests = func() []Guest {
		return []Guest{
			{"dv1", netip.MustParseAddr("172.27.64.2"), netip.MustParseAddr("fd00:1::2")},
			{Device: "dv2", Address: netip.MustParseAddr("172.27.72.3")},
		}
	}
	weak := Config{Name: "docker-br", Subnet: netip.MustParsePrefix("172.28.0.0/16"), Policy: Default()}
	weak.Policy.AllowJobs, weak.Policy.Resolvers = nil, func() []netip.Addr { return nil }
	none := weak.Policy.rules(features{})
	for name, text := range map[string]string{
		"nft": nft{c}.table(r), "iptables": iptables{c}.tables(r), "nft-weak": nft{weak}.table(none),
		"nft-both":      nft{both}.table(r) + nft{both}.ports(r),
		"iptables-weak": iptables{weak}.tables(none),
		"inside": nft{c}.inside(
			r.features, prefixes("10.0.0.5/32", "fd00::5/128"), []netip.Addr{netip.MustParseAddr("10.88.0.1"), netip.MustParseAddr("fd00:8::1")},
		),
		"inside-weak": nft{weak}.inside(features{}, nil, nil),
	} {
		file := "testdata/" + name + ".txt"
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(want), text, name)
	}
}

func TestDistinct(t *testing.T) {
	t.Parallel()
	require.Equal(
		t, prefixes("10.0.0.0/8", "192.168.1.0/24", "fd00::/8"),
		distinct(prefixes("10.2.0.0/16", "fd00::/8", "192.168.1.7/24", "10.0.0.0/8", "192.168.1.0/25", "fd00:1::/32")),
	)
	require.Empty(t, distinct(nil))
	require.Equal(t, special, distinct(special), "no two overlap")
}
