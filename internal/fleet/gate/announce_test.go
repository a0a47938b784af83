package gate

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestTokenIsFoundByItsUserOnThisMachineOnly(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("changes its user")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	address := l.Addr().String()
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	told, err := Announce(address, "secret")
	require.NoError(t, err)
	defer told.Close()
	find := func(address string) string { return AnnouncedToken(t.Context(), address) }
	require.Equal(t, "secret", find(address))
	require.Equal(t, "secret", find("localhost:"+port))
	require.Empty(t, find("127.0.0.1:1"))
	require.Empty(t, find("127.0.0.2:"+port), "nobody listens there")
	require.Empty(t, find("192.0.2.1:"+port), "another machine")
	for _, file := range told.files {
		info, err := os.Stat(file.path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())
		info, err = os.Stat(filepath.Dir(file.path))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700)|os.ModeDir, info.Mode())
	}
	other := make(chan string)
	go func() { // ends with its thread, whose user nobody else gets
		runtime.LockOSThread()
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, 65534, 65534, 65534); errno != 0 {
			other <- errno.Error()
			return
		}
		found := find(address)
		for _, file := range told.files {
			if text, err := os.ReadFile(file.path); err == nil {
				found += string(text)
			}
		}
		other <- found
	}()
	require.Empty(t, <-other, "another local user")

	wild, err := Announce("[::]:"+port, "of all addresses")
	require.NoError(t, err)
	require.Equal(t, "of all addresses", find("127.0.0.2:"+port))
	require.Empty(t, find("192.0.2.1:"+port), "a token is not sent to another machine because we listen at the same port")
	wild.Close()
	require.Empty(t, find("127.0.0.2:"+port))

	// What a server that was killed leaves behind is not told to whoever listens there now, and goes with the next.
	left := told.files[0].path
	require.NoError(t, told.files[0].f.Close())
	for _, file := range told.files[1:] {
		require.NoError(t, file.f.Close())
	}
	require.FileExists(t, left)
	require.Empty(t, find(address))
	next, err := Announce("127.0.0.3:"+port, "next")
	require.NoError(t, err)
	require.NoFileExists(t, left)
	next.Close()
	require.NoFileExists(t, next.files[0].path)
}

// Somebody else's folder in place of ours is not used.
func TestAnnouncementsLieInPrivateFoldersOnly(t *testing.T) {
	t.Parallel()
	open, file, link := filepath.Join(t.TempDir(), "open"), filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Mkdir(open, 0o755)) // on purpose
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Symlink(t.TempDir(), link))
	for _, folder := range []string{open, file, link} {
		_, err := announceIn(folder, "x", "secret")
		require.ErrorIs(t, err, os.ErrPermission, folder)
	}
}
