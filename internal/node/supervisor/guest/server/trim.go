package server

import (
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/drover-project/drover/internal/node/supervisor/guest/process"
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

// trim collects garbage and returns free pages to the kernel, unless something runs or there is too little to gain.
func (s *Server) trim() {
	if s.executions.Busy() {
		return // its end calls trimLater
	}
	if own, ok := process.PrivateBytes(os.Getpid()); ok && own < worthTrimming {
		return
	}
	runtime.GC() // the first round only moves what pools hold aside
	debug.FreeOSMemory()
}
