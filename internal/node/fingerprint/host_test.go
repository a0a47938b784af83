package fingerprint

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	h := Probe(t.TempDir())
	require.Positive(t, h.CPUMHz)
	require.Positive(t, h.MemoryMB)
	require.Positive(t, h.DiskMB)
	require.NotEmpty(t, h.IP)
	for _, key := range []string{
		"cpu.numcores", "cpu.totalcompute", "kernel.name", "kernel.version", "os.name", "unique.hostname", "arch", "cpu.arch",
		"memory.totalbytes", "kernel.landlock",
	} {
		require.NotEmpty(t, h.Attributes[key], key)
	}
}

func TestMeminfo(t *testing.T) {
	t.Parallel()
	got := meminfo([]byte("MemTotal:       16 kB\nMemFree: 3 kB\nHugePages_Total:       0\nbad\n"))
	require.Equal(t, int64(16), got["MemTotal"])
	require.Equal(t, int64(3), got["MemFree"])
}

func TestTheAddressOfAnInterface(t *testing.T) {
	t.Parallel()
	h := Probe(t.TempDir())
	require.NoError(t, h.On("lo", ""))
	require.Equal(t, "127.0.0.1", h.IP)
	require.Equal(t, "lo", h.Interface)
	require.Equal(t, "127.0.0.1", h.Attributes["unique.network.ip-address"])
	require.EqualError(t, h.On("no-such", ""), `there is no interface "no-such"`)
}

func TestTheFamilyOfTheAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		found
		family, want string
	}{
		{found{"192.0.2.1", "2001:db8::1"}, "", "192.0.2.1"},
		{found{"192.0.2.1", "2001:db8::1"}, "ipv4", "192.0.2.1"},
		{found{"192.0.2.1", "2001:db8::1"}, IPv6, "2001:db8::1"},
		{found{"192.0.2.1", ""}, IPv6, "192.0.2.1"},
		{found{"", "2001:db8::1"}, "ipv4", "2001:db8::1"},
		{found{}, IPv6, ""},
	} {
		require.Equal(t, c.want, c.of(c.family), "%+v", c)
	}
	for ip, want := range map[string][2]string{"192.0.2.1": {"ipv4", "192.0.2.1/32"}, "2001:db8::1": {IPv6, "2001:db8::1/128"}} {
		family, cidr := (&Host{IP: ip}).Address()
		require.Equal(t, want, [2]string{family, cidr})
	}
	h := Probe(t.TempDir())
	require.NoError(t, h.On("", IPv6))
	require.NotEmpty(t, h.IP)
	require.Equal(t, h.IP, h.Attributes["unique.network.ip-address"])
}
