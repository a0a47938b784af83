package diskuse

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Usage is what a folder takes.
type Usage struct {
	Bytes int64 // allocated blocks, files with several names once
	Files int64 // with folders, links and all else that takes an inode
}

// ErrMore is returned once there is more than was allowed. The usage is then what was counted up to there.
var ErrMore = errors.New("there is more")

// ErrDeep is returned for folders in folders in folders, as nobody needs them.
var ErrDeep = errors.New("the folders are nested too deeply")

const (
	maxDepth  = 128 // each level holds a descriptor
	blockSize = 512 // of Stat_t.Blocks, whatever the file system's is
)

// Measure counts what lies in dir, up to the allowed usage; a zero there means without bound. Errors: ErrMore,
// ErrDeep, fs.ErrNotExist.
func Measure(dir string, allowed Usage) (Usage, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return Usage{}, fmt.Errorf("measuring %s: %w", dir, err)
	}
	w := &walk{allowed: allowed, seen: map[uint64]bool{}}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd)
		return Usage{}, fmt.Errorf("measuring %s: %w", dir, err)
	}
	w.device = st.Dev
	err = w.count(&st)
	if err == nil {
		err = w.folder(os.NewFile(uintptr(fd), dir), 0)
	} else {
		_ = unix.Close(fd)
	}
	return w.Usage, err
}

// walk is one measurement under way.
type walk struct {
	Usage
	allowed Usage
	device  uint64
	seen    map[uint64]bool // inodes with several names
}

// folder counts what is in it, and closes it. What goes away meanwhile is not there.
func (w *walk) folder(f *os.File, depth int) error {
	defer f.Close()
	if depth > maxDepth {
		return ErrDeep
	}
	for {
		const some = 256
		names, err := f.Readdirnames(some)
		for _, name := range names {
			if err := w.entry(int(f.Fd()), name, depth); err != nil {
				return err
			}
		}
		if err != nil {
			return nil // io.EOF, or the folder went away
		}
	}
}

// entry counts one name in an open folder, and what is below it. Names are resolved from that folder and links are not
// followed, so the task cannot lead the walk elsewhere by renaming.
func (w *walk) entry(dir int, name string, depth int) error {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil //nolint:nilerr // it is gone
	}
	if st.Dev != w.device {
		return nil
	}
	if err := w.count(&st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return err
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil //nolint:nilerr // it was replaced
	}
	return w.folder(os.NewFile(uintptr(fd), name), depth+1)
}

// count adds a file, or one with several names the first time. It returns ErrMore once that is more than allowed.
func (w *walk) count(st *unix.Stat_t) error {
	if st.Mode&unix.S_IFMT != unix.S_IFDIR && st.Nlink > 1 {
		if w.seen[st.Ino] {
			return nil
		}
		w.seen[st.Ino] = true
	}
	w.Files++
	w.Bytes += st.Blocks * blockSize
	if w.allowed.Bytes > 0 && w.Bytes > w.allowed.Bytes || w.allowed.Files > 0 && w.Files > w.allowed.Files {
		return ErrMore
	}
	return nil
}
