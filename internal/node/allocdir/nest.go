package allocdir

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	nestPrefix = ".nest-"
	nestRoom   = 64 // allocations that are born in one
)

// nest is a folder in which allocations' folders are made before they are renamed into their place. To find another
// block group (see scatter) ext4 walks over all of them, which takes half a millisecond on a disk of 256 GB. So several
// allocations share one.
type nest struct {
	parent string

	mu   sync.Mutex
	made int // nests; guarded by mu
	left int // how many the last one still takes; guarded by mu
}

// hatch makes an allocation's folder in its place.
func (n *nest) hatch(allocID string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.left == 0 {
		if n.made > 0 {
			_ = os.Remove(n.path())
		}
		n.made++
		if err := os.Mkdir(n.path(), 0o700); err != nil {
			return err
		}
		n.left = nestRoom
	}
	fresh := filepath.Join(n.path(), allocID)
	if err := os.Mkdir(fresh, 0o700); err != nil {
		return err
	}
	n.left--
	return unix.Rename(fresh, filepath.Join(n.parent, allocID))
}

// path is the folder of the last nest. n.mu is held.
func (n *nest) path() string { return filepath.Join(n.parent, nestPrefix+strconv.Itoa(n.made)) }

// clear removes what an agent left that was killed.
func (n *nest) clear() error {
	entries, err := os.ReadDir(n.parent)
	if err != nil {
		return fmt.Errorf("listing the allocations' folders: %w", err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), nestPrefix) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(n.parent, e.Name())); err != nil {
			return fmt.Errorf("removing what is left of an earlier agent: %w", err)
		}
	}
	return nil
}
