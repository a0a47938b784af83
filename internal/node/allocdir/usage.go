package allocdir

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/drover-project/drover/usage"
)

// maxCounted bounds a measurement: half a second's work.
const maxCounted = 200_000

const blockSize = 512 // of Stat_t.Blocks

// Usage measures what the folder takes on the disk; other mounts below it are not counted, and no link is followed. It
// looks at each file: not for every second. Errors: NotFound when the folder is gone.
func (d Dir) Usage() (*usage.AllocDiskUsage, error) {
	root, err := os.OpenRoot(d.Path())
	if err != nil {
		return nil, mapError(d.Path(), err)
	}
	defer root.Close()
	c := counter{seen: map[uint64]bool{}}
	if err := fs.WalkDir(root.FS(), ".", c.count); err != nil && !errors.Is(err, fs.SkipAll) {
		return nil, mapError(d.Path(), err)
	}
	return &c.usage, nil
}

// counter is one measurement under way.
type counter struct {
	usage  usage.AllocDiskUsage
	device uint64
	seen   map[uint64]bool // inodes with several names
}

// count adds one entry of the walk. A file with several names counts once. It ends the walk with fs.SkipAll after
// maxCounted entries, and the result is then marked as partial.
func (c *counter) count(path string, e fs.DirEntry, err error) error {
	if err != nil {
		if e != nil && path == "." {
			return err
		}
		return nil // it went meanwhile
	}
	info, err := e.Info()
	if err != nil {
		return nil //nolint:nilerr // it went meanwhile
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if path == "." {
		c.device = st.Dev
	}
	if st.Dev != c.device {
		if e.IsDir() {
			return fs.SkipDir
		}
		return nil
	}
	if !e.IsDir() && st.Nlink > 1 {
		if c.seen[st.Ino] {
			return nil
		}
		c.seen[st.Ino] = true
	}
	c.usage.Bytes += uint64(st.Blocks) * blockSize // not negative
	if c.usage.Files++; c.usage.Files >= maxCounted {
		c.usage.Partial = true
		return fs.SkipAll
	}
	return nil
}
