package cloud

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"

	"github.com/drover-project/drover/internal/rotation"
)

// load returns what clouds told an earlier agent, by the cloud's name. Without that file, or if it cannot be read, it is nothing.
func (c *Clouds) load() map[string]Found {
	kept := map[string]Found{}
	if c.cfg.Kept == "" {
		return kept
	}
	data, err := os.ReadFile(c.cfg.Kept)
	if err == nil {
		err = json.Unmarshal(data, &kept)
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			c.cfg.Log.Warn("what the node's cloud told before cannot be read, and is asked anew", "error", err)
		}
		return map[string]Found{}
	}
	return kept
}

// keep writes down what clouds told, for the next agent. A fault of the disk is only logged: the answers are there.
func (c *Clouds) keep(told map[string]Found) {
	if c.cfg.Kept == "" {
		return
	}
	data, err := json.Marshal(told)
	if err == nil {
		err = rotation.WriteFile(c.cfg.Kept, data)
	}
	if err != nil {
		c.cfg.Log.Warn("what the node's cloud told is not kept for the next start", "error", fmt.Errorf("writing %s: %w", c.cfg.Kept, err))
	}
}

// equal reports whether both are the same answer.
func (f Found) equal(g Found) bool {
	return maps.Equal(f.Attributes, g.Attributes) && maps.Equal(f.Links, g.Links)
}
