package registry

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/drover-project/drover/internal/rotation"
	"github.com/drover-project/drover/internal/signature"
)

// maxFound bounds how many images are remembered.
const maxFound = 4096

// place is where a name that a key vouches for is remembered: no name has a space.
func place(ref, key string) string { return ref + " " + key }

// remembered is what was found before, for one of the keys.
func (c *Client) remembered(ref string, keys []signature.Key) (Signed, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recall()
	for _, k := range keys {
		if s, ok := c.found[place(ref, k.ID)]; ok && s.Key == k.ID {
			return s, true
		}
	}
	return Signed{}, false
}

// remember notes what was found. What cannot be kept is asked for again by the next client.
func (c *Client) remember(ref string, s Signed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recall()
	if c.found[place(ref, s.Key)] == s {
		return
	}
	if len(c.found) >= maxFound {
		clear(c.found) // it is asked for again
	}
	c.found[place(ref, s.Key)] = s
	if c.cfg.File == "" {
		return
	}
	text, err := json.Marshal(c.found)
	if err == nil && os.MkdirAll(filepath.Dir(c.cfg.File), 0o700) == nil {
		_ = rotation.WriteFile(c.cfg.File, text) // see above
	}
}

// recall reads, once, what was kept. A file that is missing or damaged keeps nothing. c.mu is held.
func (c *Client) recall() {
	if c.found != nil {
		return
	}
	c.found = map[string]Signed{}
	if c.cfg.File == "" {
		return
	}
	if text, err := os.ReadFile(c.cfg.File); err != nil || json.Unmarshal(text, &c.found) != nil || c.found == nil {
		c.found = map[string]Signed{}
	}
}
