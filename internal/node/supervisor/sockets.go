package supervisor

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/node/driver"
)

// sockets keeps the sockets of a shelf's supervisors off the disk. A socket cannot be bound twice, so each start makes a new inode, at
// the cost that Shelf tells of. That cost is a twentieth of a warm runner's life where thousands come and go a minute.
//
// The sockets lie in a folder of memory, <parent>/drover-<hash of the shelf's path>, which exists while it holds any. A supervisor's own
// folder has a link in the socket's place, which stays with it on the shelf. connect(2) follows the link, so agents that know nothing of
// this reach the supervisor too. Where no parent can be used, the socket lies where the link would be.
type sockets struct {
	name     string   // of the folder
	parents  []string // that may hold it, the best first
	inMemory func(folder string) bool
	log      *slog.Logger

	once   sync.Once
	usable []string // of parents; written by once
	why    []error  // the others are not; written by once
	told   sync.Once
}

// newSockets is for the shelf in the folder.
func newSockets(shelf string, log *slog.Logger) *sockets {
	if path, err := filepath.Abs(shelf); err == nil {
		shelf = path
	}
	sum := sha256.Sum256([]byte(shelf))
	s := &sockets{name: "drover-" + hex.EncodeToString(sum[:6]), inMemory: inMemory, log: log}
	if os.Geteuid() == 0 {
		s.parents = []string{"/run", "/dev/shm"}
	} else if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		s.parents = []string{dir}
	}
	return s
}

// inMemory reports whether a folder is on a tmpfs, where an inode costs nothing to make.
func inMemory(folder string) bool {
	var st unix.Statfs_t
	return unix.Statfs(folder, &st) == nil && st.Type == unix.TMPFS_MAGIC
}

// listen makes the socket of the supervisor with the state folder, which is there.
func (s *sockets) listen(stateDir string) (*os.File, error) {
	s.once.Do(func() { s.look(stateDir) })
	why := slices.Clone(s.why)
	for _, parent := range s.usable {
		f, err := listenBehind(SocketPath(stateDir), filepath.Join(parent, s.name))
		if err == nil {
			return f, nil
		}
		why = append(why, err)
	}
	if len(why) > 0 {
		s.told.Do(func() {
			s.log.Warn("supervisors listen on the disk, where it costs more to start one", "error", errors.Join(why...))
		})
	}
	return listen(SocketPath(stateDir))
}

// look finds out where sockets may lie, and removes those that an earlier agent left there.
func (s *sockets) look(stateDir string) {
	if s.inMemory(stateDir) {
		return
	}
	for _, parent := range s.parents {
		if !s.inMemory(parent) {
			continue
		}
		if err := steady(parent); err != nil {
			s.why = append(s.why, err)
			continue
		}
		s.usable = append(s.usable, parent)
		sweepSockets(filepath.Join(parent, s.name))
	}
}

// steady refuses a folder in which somebody else could put another in place of ours.
func steady(parent string) error {
	var st unix.Stat_t
	if err := unix.Stat(parent, &st); err != nil {
		return &os.PathError{Op: "stat", Path: parent, Err: err}
	}
	if own := st.Uid == 0 || int(st.Uid) == os.Geteuid(); !own || st.Mode&0o022 != 0 && st.Mode&unix.S_ISVTX == 0 {
		return fmt.Errorf("%s (owner %d, mode %o) is open to others: %w", parent, st.Uid, st.Mode&0o7777, os.ErrPermission)
	}
	return nil
}

// sweepSockets removes the sockets that nobody listens at. No supervisor is being started meanwhile.
func sweepSockets(folder string) {
	dir, err := openPrivate(folder)
	if err != nil {
		return
	}
	defer dir.Close()
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		conn, err := dial(filepath.Join(folder, e.Name()))
		if err == nil {
			_ = conn.Close()
		} else if errors.Is(err, driver.ErrGone) {
			_ = unix.Unlinkat(int(dir.Fd()), e.Name(), 0)
		}
	}
	_ = unix.Rmdir(folder) // unless there are others
}

// listenBehind listens in the folder, where the link says; it makes both if they are missing.
func listenBehind(link, folder string) (f *os.File, err error) {
	const tries = 3 // whoever removes the last socket of others takes the folder away
	for range tries {
		if f, err = listenThere(link, folder); !errors.Is(err, unix.ENOENT) {
			break
		}
	}
	return f, err
}

// listenThere is one try of listenBehind. ENOENT says that the folder was removed between the two steps.
func listenThere(link, folder string) (*os.File, error) {
	dir, err := privateFolder(folder)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	name, err := linkedName(link, folder)
	if err != nil {
		return nil, err
	}
	return listenIn(dir, name)
}

// linkedName returns the name in the folder that the link says. What else is in the link's place goes.
func linkedName(link, folder string) (string, error) {
	if target, err := os.Readlink(link); err == nil && filepath.Dir(target) == folder {
		return filepath.Base(target), nil
	}
	removeSocket(link)
	if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	name := rand.Text()[:16] // 80 bits; a link this short lies in its inode
	return name, os.Symlink(filepath.Join(folder, name), link)
}

// removeSocket removes what the link leads to, if it is one, with the folder around if that is empty then, and reports
// whether it is.
func removeSocket(link string) bool {
	target, err := os.Readlink(link)
	if err != nil {
		return false
	}
	_ = unix.Unlink(target)
	_ = unix.Rmdir(filepath.Dir(target))
	return true
}

// privateFolder opens the folder, and makes it if it is missing.
func privateFolder(path string) (*os.File, error) {
	dir, err := openPrivate(path)
	if !errors.Is(err, unix.ENOENT) {
		return dir, err
	}
	if err := unix.Mkdir(path, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, &os.PathError{Op: "mkdir", Path: path, Err: err}
	}
	return openPrivate(path)
}

// openPrivate opens a folder that nobody but us may enter. A link to one is none.
func openPrivate(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	dir := os.NewFile(uintptr(fd), path)
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && (int(st.Uid) != os.Geteuid() || st.Mode&0o777 != 0o700) {
		err = fmt.Errorf("%s (owner %d, mode %o) is not only ours: %w", path, st.Uid, st.Mode&0o777, os.ErrPermission)
	}
	if err != nil {
		_ = dir.Close()
		return nil, err
	}
	return dir, nil
}
