package fingerprint

import (
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheNumbersAgree(t *testing.T) {
	t.Parallel()
	h := Probe(t.TempDir())
	number := func(key string) int64 {
		n, err := strconv.ParseInt(h.Attributes[key], 10, 64)
		require.NoError(t, err, key)
		return n
	}
	require.Equal(t, h.CPUMHz, number("cpu.totalcompute"))
	require.Equal(t, CoreMHz()*int64(h.Cores), number("cpu.frequency")*number("cpu.numcores"))
	require.Equal(t, h.MemoryMB, number("memory.totalbytes")>>20)
	require.LessOrEqual(t, number("unique.storage.bytesfree"), number("unique.storage.bytestotal"))
	require.Equal(t, h.IP, h.Attributes["unique.network.ip-address"])
	_, err := netip.ParseAddr(h.IP)
	require.NoError(t, err)
	_, err = net.InterfaceByName(h.Interface)
	require.NoError(t, err)
}

func TestAFolderThatIsNotThere(t *testing.T) {
	t.Parallel()
	h := Probe(filepath.Join(t.TempDir(), "no", "such"))
	require.Zero(t, h.DiskMB)
	require.NotContains(t, h.Attributes, "unique.storage.bytesfree")
	require.Positive(t, h.MemoryMB, "the rest is found")
}

func TestWhatIsNotKnownIsNoAttribute(t *testing.T) {
	t.Parallel()
	h := Host{Attributes: map[string]string{}}
	h.set("empty", "")
	h.set("known", "x")
	require.Equal(t, map[string]string{"known": "x"}, h.Attributes)
}

func TestMeminfoOfOddLines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]map[string]int64{
		"":                      {},
		"MemTotal:":             {},
		"MemTotal: many kB\n":   {"MemTotal": 0},
		"A: 1 kB\nA: 2 kB\n":    {"A": 2},
		"DirectMap4k:   9 kB":   {"DirectMap4k": 9},
		"no colon here\nB: 3\n": {"B": 3},
	} {
		require.Equal(t, want, meminfo([]byte(text)), "%q", text)
	}
}

func TestALoopbackHasNoAddressForOthers(t *testing.T) {
	t.Parallel()
	interfaces, err := net.Interfaces()
	require.NoError(t, err)
	for _, i := range interfaces {
		if i.Flags&net.FlagLoopback != 0 {
			require.Empty(t, addressesOf(i).of(IPv6))
		}
	}
}
