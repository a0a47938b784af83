package nsinit

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func full() *Config {
	return &Config{
		Hostname: "h", Lowers: []Source{{FD: 0}, {FD: -1, Path: "/x", ReadOnly: true}}, SizeMB: 5, Inodes: 6, ReadOnly: true,
		Scratch: []Scratch{{Target: "/tmp", Mode: 0o1777, UID: 7}}, Links: [][2]string{{"a", "b"}},
		Binds:  []Bind{{Source: Source{FD: 2}, Target: "/b", File: true, Late: true}},
		Logs:   &Source{FD: 3},
		DevPTS: "o", Loopback: true, MaskFiles: []string{"m"}, MaskDirs: []string{"d", ""}, ReadOnlyPaths: []string{"r"},
		NoUserNamespaces: true, KeepCaps: 1 << 40, Seccomp: []byte{1, 2, 3}, Rlimits: []Rlimit{{Resource: 1, Soft: 2, Hard: 1 << 63}},
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	got, err := Decode(full().Encode())
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(full(), got))
}

func TestCutOff(t *testing.T) {
	t.Parallel()
	whole := full().Encode()
	for n := range whole {
		_, err := Decode(whole[:n])
		require.Error(t, err, "%d of %d bytes", n, len(whole))
	}
}

func TestDecodeNeverPanics(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { _, _ = Decode(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) })
}

func TestSendAndReceive(t *testing.T) {
	t.Parallel()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	require.NoError(t, err)
	ours, theirs := os.NewFile(uintptr(pair[0]), "a"), os.NewFile(uintptr(pair[1]), "b")
	defer theirs.Close()
	require.NoError(t, unix.SetNonblock(pair[1], false))
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	require.NoError(t, Send(ours, full(), []int{int(null.Fd())}))
	got, fds, err := receive(int(theirs.Fd()))
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(full(), got))
	require.Len(t, fds, 1)
	require.NoError(t, unix.Close(fds[0]))
	_, err = theirs.WriteString("no luck")
	require.NoError(t, err)
	require.NoError(t, theirs.Close())
	require.EqualError(t, Result(ours), "no luck")
	require.NoError(t, ours.Close())
}

func TestMainRefusesStrangers(t *testing.T) {
	t.Parallel()
	require.Equal(t, 2, Main(nil))
	require.Equal(t, 2, Main([]string{"x"}))
}
