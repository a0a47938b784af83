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

	"drover"
	"drover/internal/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAddresses(t *testing.T) {
	t.Parallel()
	n := New(Config{Subnet: netip.MustParsePrefix("10.1.2.0/29")})
	require.Equal(t, "10.1.2.1", n.Gateway().String())
	n.Hold(netip.MustParseAddr("10.1.2.3"))
	var got []string
	for {
		a, err := n.Take()
		if err != nil {
			require.Equal(t, drover.Exhausted, drover.CodeOf(err))
			break
		}
		got = append(got, a.String())
	}
	require.Equal(t, []string{"10.1.2.2", "10.1.2.4", "10.1.2.5", "10.1.2.6"}, got, "neither ours nor the broadcast address")
	n.release(netip.MustParseAddr("10.1.2.4"))
	a, err := n.Take()
	require.NoError(t, err)
	require.Equal(t, "10.1.2.4", a.String())
	require.Equal(t, "dv0a010204"[:2], Device(a)[:2])
	require.LessOrEqual(t, len(Device(netip.MustParseAddr("255.255.255.255"))), 15)
}

func BenchmarkConnect(b *testing.B) {
	var r [3]byte
	_, _ = rand.Read(r[:]) // never fails
	n := New(Config{Name: fmt.Sprintf("dt%x", r), Subnet: netip.MustParsePrefix("172.31.99.0/24"), Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler)})
	for b.Loop() {
		b.StopTimer()
		c := exec.Command("sleep", "100")
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
		require.NoError(b, c.Start())
		a, err := n.Take()
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
