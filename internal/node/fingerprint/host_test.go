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
		"memory.totalbytes",
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
	require.NoError(t, h.On("lo"))
	require.Equal(t, "127.0.0.1", h.IP)
	require.Equal(t, "lo", h.Interface)
	require.Equal(t, "127.0.0.1", h.Attributes["unique.network.ip-address"])
	require.EqualError(t, h.On("no-such"), `there is no interface "no-such"`)
}
