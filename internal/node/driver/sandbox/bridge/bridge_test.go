package bridge

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/netip"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAddresses(t *testing.T) {
	t.Parallel()
	n := New(Config{Subnet: netip.MustParsePrefix("10.1.2.0/28")})
	require.Equal(t, "10.1.2.1", n.Gateway().String())
	n.used[netip.MustParseAddr("10.1.2.3")] = true
	all := func(k Kind) (got []string) {
		for {
			a, err := n.Take(k)
			if err != nil {
				require.Equal(t, drover.Exhausted, drover.CodeOf(err))
				return got
			}
			got = append(got, a.String())
		}
	}
	require.Equal(t, []string{"10.1.2.2", "10.1.2.4", "10.1.2.5", "10.1.2.6", "10.1.2.7"}, all(Jobs), "neither ours nor one that is held")
	require.Equal(
		t,
		[]string{"10.1.2.9", "10.1.2.10", "10.1.2.11", "10.1.2.12", "10.1.2.13", "10.1.2.14", "10.1.2.8"},
		all(Runners),
		"not the broadcast address",
	)
	for k, address := range map[Kind]string{Jobs: "10.1.2.4", Runners: "10.1.2.12"} {
		n.release(netip.MustParseAddr(address))
		a, err := n.Take(k)
		require.NoError(t, err)
		require.Equal(t, address, a.String())
	}
	require.Equal(t, netip.MustParsePrefix("172.27.72.0/21"), New(Config{}).half(Runners))
	require.Equal(t, netip.MustParsePrefix("10.1.128.0/17"), New(Config{Subnet: netip.MustParsePrefix("10.1.0.0/16")}).half(Runners))
	a := netip.MustParseAddr("10.1.2.4")
	require.Equal(t, "dv0a010204"[:2], Device(a)[:2])
	require.LessOrEqual(t, len(Device(netip.MustParseAddr("255.255.255.255"))), 15)
}

func BenchmarkConnect(b *testing.B) {
	var r [3]byte
	_, _ = rand.Read(r[:]) // never fails
	n := New(
		Config{
			Name:   fmt.Sprintf("dt%x", r),
			Subnet: netip.MustParsePrefix("172.31.99.0/24"),
			Clock:  clock.Wall{},
			Log:    slog.New(slog.DiscardHandler),
		},
	)
	for b.Loop() {
		b.StopTimer()
		c := exec.Command("sleep", "100")
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
		require.NoError(b, c.Start())
		a, err := n.Take(Runners)
		require.NoError(b, err)
		b.StartTimer()
		require.NoError(b, n.Connect(a, c.Process.Pid))
		b.StopTimer()
		_ = c.Process.Kill()
		_ = c.Wait()
		b.StartTimer()
		require.NoError(b, n.Disconnect(b.Context(), a))
	}
	require.NoError(b, n.Close())
}
