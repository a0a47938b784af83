package server

import (
	"syscall"
	"time"
)

// lonelyCheck is how often a supervisor without an agent looks: rare enough to cost nothing, with hundreds of them on a machine.
const lonelyCheck = 5 * time.Second

// arrived and departed count the agents that are connected. While there is none, a timer looks whether one can still come. Our stdout is
// a file beside the socket, or beside the link to it, and is deleted with that folder. A supervisor that nobody can reach cannot be
// stopped by anybody, so it ends itself.
func (s *Server) arrived(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agents[c] = true
	if s.lonely != nil {
		s.lonely.Stop()
		s.lonely = nil
	}
}

func (s *Server) departed(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.agents, c)
	if s.idle && len(s.agents) == 0 { // nobody knows of us any more
		s.stopping = true
		s.end()
		return
	}
	s.watchSocket()
}

// watchSocket sets the timer. Caller holds mu.
func (s *Server) watchSocket() {
	if len(s.agents) > 0 {
		return
	}
	s.lonely = s.clock.AfterFunc(lonelyCheck, func() {
		if unreachable() {
			s.shutdown()
			s.end()
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watchSocket()
	})
}

// unreachable reports whether stdout is a file that has lost its last name. If stdout is anything else, this cannot be told, and the
// answer is false.
func unreachable() bool {
	var st syscall.Stat_t
	return syscall.Fstat(syscall.Stdout, &st) == nil && st.Mode&syscall.S_IFMT == syscall.S_IFREG && st.Nlink == 0
}
