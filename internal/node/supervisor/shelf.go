package supervisor

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// shelfRoom bounds how many folders are kept.
const shelfRoom = 64

// Shelf keeps the folders of ended supervisors for the next ones. A kept folder has an empty log, the file of the process id, and the
// link to the socket, which lies in memory (see sockets). Its methods may be called at once.
//
// The reason is ext4 without a journal: for each new inode it searches past all inodes that were deleted in the last minute. A supervisor
// needs four, and the folder saves three of them. Where thousands of warm runners come and go a minute, that is a tenth of a runner's
// life.
type Shelf struct {
	dir     string // its own; on the file system of the supervisors' folders, else nothing is kept
	sockets *sockets

	mu      sync.Mutex
	ready   bool     // guarded by mu
	made    int      // guarded by mu
	folders []string // guarded by mu
}

// NewShelf returns an empty shelf in the folder, which is made, or emptied, when the first is kept. The log is told once
// why sockets lie on the disk, if they do.
func NewShelf(dir string, log *slog.Logger) *Shelf {
	return &Shelf{dir: dir, sockets: newSockets(dir, log)}
}

// Take makes a kept folder the state folder of a supervisor that is to be launched; without one Launch makes it.
func (s *Shelf) Take(stateDir string) {
	s.mu.Lock()
	folder := ""
	if n := len(s.folders); n > 0 {
		folder, s.folders = s.folders[n-1], s.folders[:n-1]
	}
	s.mu.Unlock()
	if folder != "" && os.Rename(folder, stateDir) != nil { // there is one with something in it
		_ = os.RemoveAll(folder)
	}
}

// Put removes the state folder of a supervisor that has ended, or keeps it.
func (s *Shelf) Put(stateDir string) error {
	if cleared(stateDir) && s.keep(stateDir) {
		return nil
	}
	return Discard(stateDir)
}

// Discard removes the state folder of a supervisor that nobody is to reach any more, and its socket.
func Discard(stateDir string) error {
	removeSocket(SocketPath(stateDir))
	return os.RemoveAll(stateDir)
}

// cleared reports whether nothing but what the next supervisor finds in its place is left in the folder.
func cleared(stateDir string) bool {
	entries, err := os.ReadDir(stateDir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if e.Name() == socketName && removeSocket(filepath.Join(stateDir, socketName)) {
			continue // the link stays
		}
		info, err := e.Info()
		switch {
		case err != nil:
			return false
		case info.Mode().IsRegular() && (e.Name() == pidFile || e.Name() == initLog && info.Size() == 0):
		case e.IsDir() || os.Remove(filepath.Join(stateDir, e.Name())) != nil:
			return false
		}
	}
	return len(entries) > 0
}

// keep moves the folder onto the shelf; false if the shelf is full or on another file system.
func (s *Shelf) keep(stateDir string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.folders) >= shelfRoom || s.prepare() != nil {
		return false
	}
	s.made++
	folder := filepath.Join(s.dir, strconv.Itoa(s.made))
	if os.Rename(stateDir, folder) != nil {
		return false
	}
	s.folders = append(s.folders, folder)
	return true
}

// prepare removes what an earlier agent kept. Caller holds mu.
func (s *Shelf) prepare() error {
	if s.ready {
		return nil
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("making the folder of kept state: %w", err)
	}
	s.ready = true
	return nil
}
