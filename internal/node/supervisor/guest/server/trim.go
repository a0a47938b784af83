package server

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	trimAfter = time.Second
	// A collection leaves 370 kB of the runtime's own behind, and so does runtime.ReadMemStats (Go 1.26, measured): of a
	// small heap it costs more memory than it gives back. Nothing started yet: 0.8 MB.
	worthTrimming = 1400 << 10
)

// trimLater gives memory back to the system when nothing runs and nothing was started for a while: an idle supervisor
// is one of hundreds. No timer runs before the first execution ended, and none while one runs.
func (s *Server) trimLater() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trimmer == nil {
		s.trimmer = s.clock.AfterFunc(trimAfter, s.trim)
		return
	}
	s.trimmer.Reset(trimAfter)
}

func (s *Server) trim() {
	s.mu.Lock()
	busy := len(s.execs) > len(s.finished)
	s.mu.Unlock()
	if busy {
		return // its end calls trimLater
	}
	if own, ok := privateBytes(); ok && own < worthTrimming {
		return
	}
	runtime.GC() // the first round only moves what pools hold aside
	debug.FreeOSMemory()
}

// privateBytes is our resident memory that is of no file.
func privateBytes() (n int64, ok bool) {
	var buf [128]byte
	fd, err := syscall.Open("/proc/self/statm", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0, false
	}
	defer syscall.Close(fd) //nolint:errcheck // it was only read
	k, err := syscall.Read(fd, buf[:])
	f := strings.Fields(string(buf[:max(k, 0)]))
	if err != nil || len(f) < 3 {
		return 0, false
	}
	resident, err1 := strconv.ParseInt(f[1], 10, 64)
	shared, err2 := strconv.ParseInt(f[2], 10, 64)
	return (resident - shared) * int64(os.Getpagesize()), err1 == nil && err2 == nil
}
