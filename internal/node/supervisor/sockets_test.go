package supervisor

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/node/driver"
)

// machine is a shelf on a machine of folders.
type machine struct {
	*Shelf
	states string // holds the supervisors' folders
	parent string // in "memory"
	log    bytes.Buffer
}

// newMachine returns one whose parents are in memory, the disk is not.
func newMachine(t testing.TB, dir string, parents ...string) *machine {
	t.Helper()
	m := &machine{states: filepath.Join(dir, "supervisor"), parent: parents[0]}
	require.NoError(t, os.MkdirAll(m.states, 0o700))
	m.Shelf = NewShelf(filepath.Join(dir, "shelf"), slog.New(slog.NewTextHandler(&m.log, nil)))
	m.sockets.parents = parents
	m.sockets.inMemory = func(folder string) bool { return slices.Contains(parents, folder) }
	return m
}

func (m *machine) folder() string { return filepath.Join(m.parent, m.sockets.name) }

// sockets in the folder, 0 if it is not there.
func (m *machine) count(t testing.TB) int {
	t.Helper()
	if _, err := os.Lstat(m.folder()); err != nil {
		require.ErrorIs(t, err, fs.ErrNotExist)
		return 0
	}
	return len(names(t, m.folder()))
}

// start is a start's part that the shelf knows of.
func (m *machine) start(t testing.TB, name string) (state string, listener *os.File) {
	t.Helper()
	state = filepath.Join(m.states, name)
	m.Take(state)
	require.NoError(t, os.MkdirAll(state, 0o700))
	listener, err := m.sockets.listen(state)
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return state, listener
}

// end ends a listener as its process's end does. Closing alone does not while another test forks: its child has a copy until it executes.
func end(t testing.TB, listener *os.File) {
	t.Helper()
	require.NoError(t, unix.Shutdown(int(listener.Fd()), unix.SHUT_RDWR))
	require.NoError(t, listener.Close())
}

func reached(t testing.TB, state string) {
	t.Helper()
	conn, err := dial(SocketPath(state))
	require.NoError(t, err)
	require.NoError(t, conn.Close())
}

func onDisk(t testing.TB, state string) bool {
	t.Helper()
	info, err := os.Lstat(SocketPath(state))
	require.NoError(t, err)
	return info.Mode()&fs.ModeSocket != 0
}

func TestASocketLiesInMemoryBehindALinkThatServesAgain(t *testing.T) {
	t.Parallel()
	m := newMachine(t, t.TempDir(), t.TempDir())
	first, listener := m.start(t, "a")
	require.False(t, onDisk(t, first))
	reached(t, first)
	info, err := os.Lstat(m.folder())
	require.NoError(t, err)
	require.Equal(t, fs.ModeDir|0o700, info.Mode())
	target, err := os.Readlink(SocketPath(first))
	require.NoError(t, err)
	require.Equal(t, m.folder(), filepath.Dir(target))

	end(t, listener)
	_, err = dial(SocketPath(first))
	require.ErrorIs(t, err, driver.ErrGone)
	require.NoError(t, m.Put(first))
	require.NoFileExists(t, target)
	require.NoDirExists(t, m.folder(), "it was the last")
	_, err = dial(SocketPath(first))
	require.ErrorIs(t, err, driver.ErrGone)

	next, _ := m.start(t, "b")
	again, err := os.Readlink(SocketPath(next))
	require.NoError(t, err)
	require.Equal(t, target, again)
	reached(t, next)
	require.Empty(t, m.log.String())
}

func TestTheFolderStaysWhileAnotherListensThere(t *testing.T) {
	t.Parallel()
	m := newMachine(t, t.TempDir(), t.TempDir())
	one, _ := m.start(t, "one")
	two, _ := m.start(t, "two")
	require.NoError(t, Discard(one))
	require.NoDirExists(t, one)
	require.Equal(t, 1, m.count(t))
	reached(t, two)
	require.NoError(t, Discard(two))
	require.NoDirExists(t, m.folder())
}

func TestManyAtOnceComeAndGoInOneFolder(t *testing.T) {
	t.Parallel()
	m := newMachine(t, t.TempDir(), t.TempDir())
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() { // ends by itself
			for range 50 {
				state := filepath.Join(m.states, string(rune('a'+i)))
				m.Take(state)
				if err := os.MkdirAll(state, 0o700); err != nil {
					t.Error(err)
					return
				}
				f, err := m.sockets.listen(state)
				if err != nil {
					t.Error(err)
					return
				}
				conn, err := dial(SocketPath(state))
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = conn.Close(), f.Close()
				if err := m.Put(state); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.Zero(t, m.count(t))
}

func TestARebootLeavesALinkToNothing(t *testing.T) {
	t.Parallel()
	data, parent := t.TempDir(), t.TempDir()
	m := newMachine(t, data, parent)
	state, listener := m.start(t, "a")
	end(t, listener)
	require.NoError(t, os.RemoveAll(m.folder()))

	m = newMachine(t, data, parent)
	_, err := dial(SocketPath(state))
	require.ErrorIs(t, err, driver.ErrGone)
	for _, put := range []func(string) error{
		func(path string) error { return os.WriteFile(path, nil, 0o600) },
		func(path string) error { return os.Symlink(path, path) },
	} { // anybody may
		require.NoError(t, put(m.folder()))
		_, err = dial(SocketPath(state))
		require.ErrorIs(t, err, driver.ErrGone)
		require.NoError(t, os.Remove(m.folder()))
	}
	require.NoError(t, Clean(t.Context(), state, options()))
	require.NoDirExists(t, state)
	state, _ = m.start(t, "a")
	reached(t, state)

	require.NoError(t, os.RemoveAll(m.folder()), "as when a user's session ends")
	state, _ = m.start(t, "b")
	require.False(t, onDisk(t, state))
	reached(t, state)
}

func TestWhatAKilledAgentsSupervisorsLeftIsRemovedAndNothingElse(t *testing.T) {
	t.Parallel()
	data, parent := t.TempDir(), t.TempDir()
	m, other := newMachine(t, data, parent), newMachine(t, t.TempDir(), parent)
	_, dead := m.start(t, "dead")
	alive, _ := m.start(t, "alive")
	end(t, dead)
	foreign, closed := other.start(t, "foreign")
	_, gone := other.start(t, "gone")
	end(t, gone)

	m = newMachine(t, data, parent)
	require.Equal(t, 2, m.count(t))
	next, _ := m.start(t, "next")
	require.Equal(t, 2, m.count(t))
	reached(t, alive)
	reached(t, next)
	reached(t, foreign)
	require.Equal(t, 2, other.count(t), "another agent's")

	// All end while there is no agent, and so does the data: the next agent of that path takes the rest away.
	end(t, closed)
	require.NoError(t, os.RemoveAll(other.states))
	other = newMachine(t, filepath.Dir(other.states), parent)
	last, _ := other.start(t, "last")
	require.Equal(t, 1, other.count(t))
	require.NoError(t, other.Put(last))
	require.NoDirExists(t, other.folder())
}

func TestAnAgentThatKnowsNothingOfLinks(t *testing.T) {
	t.Parallel()
	m := newMachine(t, t.TempDir(), t.TempDir())
	state, listener := m.start(t, "a")
	end(t, listener)
	old, err := listen(SocketPath(state)) // as it does
	require.NoError(t, err)
	require.True(t, onDisk(t, state))
	reached(t, state)
	require.NoError(t, old.Close())
	state, _ = m.start(t, "a") // and back
	require.False(t, onDisk(t, state))
	reached(t, state)
}

func TestAPathLongerThanAnAddress(t *testing.T) {
	t.Parallel()
	long := filepath.Join(strings.Repeat("x", 200), strings.Repeat("y", 200))
	parent := filepath.Join(t.TempDir(), long)
	require.NoError(t, os.MkdirAll(parent, 0o700))
	m := newMachine(t, filepath.Join(t.TempDir(), long), parent)
	state, _ := m.start(t, "a")
	require.False(t, onDisk(t, state))
	reached(t, state)
}

func TestWithoutMemorySocketsLieOnTheDisk(t *testing.T) {
	t.Parallel()
	mode := func(mode os.FileMode) func(*testing.T, string, string) {
		return func(t *testing.T, parent, _ string) { require.NoError(t, os.Chmod(parent, mode)) }
	}
	for name, test := range map[string]struct {
		spoil func(t *testing.T, parent, folder string)
		says  string // "" = nothing
	}{
		"no such parent":    {func(t *testing.T, parent, _ string) { require.NoError(t, os.Remove(parent)) }, "no such file"},
		"open parent":       {mode(0o777), "is open to others"},
		"sticky parent":     {mode(os.ModeSticky | 0o777), ""},
		"somebody's folder": {func(t *testing.T, _, folder string) { require.NoError(t, os.Mkdir(folder, 0o755)) }, "is not only ours"},
		"a file":            {func(t *testing.T, _, folder string) { require.NoError(t, os.WriteFile(folder, nil, 0o700)) }, "not a directory"},
		"a link":            {func(t *testing.T, _, folder string) { require.NoError(t, os.Symlink(t.TempDir(), folder)) }, "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, t.TempDir(), t.TempDir())
			test.spoil(t, m.parent, m.folder())
			state, _ := m.start(t, "a")
			require.Equal(t, test.says != "", onDisk(t, state))
			reached(t, state)
			_, _ = m.start(t, "b")
			if test.says == "" {
				require.Empty(t, m.log.String())
				return
			}
			require.Contains(t, m.log.String(), test.says)
			require.Equal(t, 1, strings.Count(m.log.String(), "\n"), "told once")
		})
	}
}

func TestTheNextParentIsTaken(t *testing.T) {
	t.Parallel()
	full, good := t.TempDir(), t.TempDir()
	m := newMachine(t, t.TempDir(), full, good)
	require.NoError(t, os.WriteFile(filepath.Join(full, m.sockets.name), nil, 0o600))
	state, _ := m.start(t, "a")
	require.False(t, onDisk(t, state))
	require.Len(t, names(t, filepath.Join(good, m.sockets.name)), 1)
	require.Empty(t, m.log.String())
}

func TestDataInMemoryNeedsNoLink(t *testing.T) {
	t.Parallel()
	m := newMachine(t, t.TempDir(), t.TempDir())
	m.sockets.inMemory = func(string) bool { return true }
	state, _ := m.start(t, "a")
	require.True(t, onDisk(t, state))
	require.Zero(t, m.count(t))
	m.sockets = newSockets(m.dir, quiet())
	m.sockets.inMemory = func(string) bool { return false }
	state, _ = m.start(t, "b")
	require.True(t, onDisk(t, state))
}

// listenAs lets a thread of its own be the user.
func listenAs(uid int, path string, listening chan<- net.Listener) {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() { // the first thread cannot end
		done := make(chan struct{})
		go func() { // ends at once, on another thread
			defer close(done)
			listenAs(uid, path, listening)
		}()
		<-done
		runtime.UnlockOSThread()
		return
	}
	defer close(listening)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return
	}
	dir, name, err := openParent(path) // see dial: TMPDIR may be longer than a socket's path
	if err != nil {
		return
	}
	defer dir.Close()
	short := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name)
	if unix.Bind(fd, &unix.SockaddrUnix{Name: short}) != nil {
		return
	}
	_, _, e := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid))
	if e != 0 || unix.Listen(fd, 1) != nil {
		return
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	if l, err := net.FileListener(f); err == nil {
		listening <- l
	}
}

// After a reboot anybody may make a folder of our folder's name in /dev/shm.
func TestAListenerOfAnotherUserIsNoSupervisor(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Log("only root can be another user: not tried")
		return
	}
	m := newMachine(t, t.TempDir(), t.TempDir())
	state, listener := m.start(t, "a")
	end(t, listener)
	target, err := os.Readlink(SocketPath(state))
	require.NoError(t, err)
	require.NoError(t, os.Remove(target))
	listening := make(chan net.Listener)
	go listenAs(12345, target, listening) // ends at once, and its thread with it
	l := <-listening
	require.NotNil(t, l)
	defer l.Close()
	_, err = Connect(t.Context(), SocketPath(state), options())
	require.ErrorIs(t, err, driver.ErrGone)
	require.ErrorContains(t, err, "user 12345")
	require.NoError(t, os.Chown(state, 12345, 12345))
	reached(t, state) // whose state is the same user's
}

func TestASupervisorBehindALink(t *testing.T) {
	t.Parallel()
	m := newMachine(t, t.TempDir(), t.TempDir())
	c, state := launch(t, func(cfg *LaunchConfig) { cfg.Shelf = m.Shelf })
	require.False(t, onDisk(t, state))
	require.Equal(t, "x\n", string(run(t, c, sh("echo x")).stdout))
	require.NoError(t, c.Close())
	m = newMachine(t, filepath.Dir(m.states), m.parent) // an agent that was killed, and the next
	_, _ = m.start(t, "b")
	again, err := Connect(t.Context(), SocketPath(state), options())
	require.NoError(t, err)
	require.Equal(t, "test", again.ID())
	require.NoError(t, again.Shutdown(context.WithoutCancel(t.Context())))
	_ = again.Close()
	require.NoError(t, m.Put(state))
	require.Equal(t, 1, m.count(t), "that of the other")
}

// BenchmarkListen is one socket's coming and going on the disk of the temporary folder, which gets slower with what was
// deleted there a moment ago, and in memory.
func BenchmarkListen(b *testing.B) {
	parent, err := os.MkdirTemp("/dev/shm", "drover-bench-*")
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, os.RemoveAll(parent)) })
	for name, usable := range map[string][]string{"disk": nil, "memory": {parent}} {
		b.Run(name, func(b *testing.B) {
			m := newMachine(b, b.TempDir(), parent)
			m.sockets.parents = usable
			_, _ = m.start(b, "another")
			for b.Loop() {
				state := filepath.Join(m.states, "a")
				m.Take(state)
				require.NoError(b, os.MkdirAll(state, 0o700))
				f, err := m.sockets.listen(state)
				require.NoError(b, err)
				require.NoError(b, f.Close())
				require.NoError(b, m.Put(state))
			}
		})
	}
}
