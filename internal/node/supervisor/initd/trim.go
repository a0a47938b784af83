package initd

import (
	"runtime"
	"runtime/debug"
	"time"
)

const trimAfter = time.Second

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
	runtime.GC() // the first round only moves what pools hold aside
	debug.FreeOSMemory()
}
