package images

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// kept is the file with the images that this agent got, and their references, so that a later one removes them.
func (s *Cache) kept() string { return filepath.Join(s.cfg.Owner, s.cfg.Name+"-images.json") }

// recall reads, once, what an earlier agent got. The caller holds mu.
func (s *Cache) recall() {
	if s.recalled {
		return
	}
	s.recalled = true
	ours := map[string][]string{}
	text, err := os.ReadFile(s.kept())
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		err = json.Unmarshal(text, &ours)
	}
	if err != nil {
		s.cfg.Log.Warn("images that an earlier agent pulled stay on the machine", "file", s.kept(), "error", err)
		return
	}
	for id, refs := range ours {
		s.ours[id] = append(s.ours[id], refs...)
	}
}

// keep writes down which images are ours. The caller holds mu.
func (s *Cache) keep() {
	text, err := json.Marshal(s.ours)
	// The new file replaces the old in one step, so an agent that is killed here leaves one that can be read.
	if err == nil {
		err = os.WriteFile(s.kept()+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(s.kept()+".new", s.kept())
	}
	if err != nil {
		s.cfg.Log.Warn("an image that was pulled stays if this agent ends before it is removed", "error", err)
	}
}

// Sweep lets go of images of ours that no task uses: those of an earlier agent, and those that the daemon could not
// remove when it was asked.
func (s *Cache) Sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recall()
	for id := range s.ours {
		if s.users[id] <= 0 && s.timers[id] == nil {
			s.expire(id)
		}
	}
}

// expire removes an image after the delay. The caller holds mu.
func (s *Cache) expire(id string) {
	if s.cfg.Delay < 0 || s.closed {
		return
	}
	s.timers[id] = s.cfg.Clock.AfterFunc(s.cfg.Delay, func() { s.remove(id) })
}
