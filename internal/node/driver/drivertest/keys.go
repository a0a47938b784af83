package drivertest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Fate is what becomes of a key of a task's configuration.
type Fate int

// The fates of keys.
const (
	Works   Fate = iota // what was read differs by it
	Refused             // it is an error, which names it
	Ignored             // it is read and changes nothing; who registers the job is warned, or what it says holds anyway
)

// Key is one of Nomad's, those of blocks as "block.key".
type Key struct {
	Name string
	With any // value of the key, of a block the whole block
	Fate Fate
	// Without is the block without the key.
	Without any
}

// WalkKeys tries keys of Nomad's driver, each on top of base, with what the driver reads of a configuration. All that the driver reads
// (read) has to be among them or ours, so nothing is accepted of which nobody has said what becomes of it.
func WalkKeys(t *testing.T, keys []Key, base map[string]any, parse func(map[string]any) (any, error), read, ours []string) {
	t.Helper()
	known := map[string]bool{}
	for _, name := range ours {
		known[name] = true
	}
	for _, k := range keys {
		top, _, inBlock := strings.Cut(k.Name, ".")
		known[k.Name], known[top] = true, true
		with, without := maps.Clone(base), maps.Clone(base)
		with[top] = k.With
		if inBlock {
			without[top] = k.Without
		} else {
			delete(without, top)
		}
		before, err := parse(without)
		if err != nil && k.Fate != Refused && len(without) == len(base) {
			require.NoError(t, err, k.Name)
		}
		after, err := parse(with)
		switch k.Fate {
		case Works:
			require.NoError(t, err, k.Name)
			require.NotEqual(t, before, after, "%s is accepted, and nothing reads it", k.Name)
		case Refused:
			require.Error(t, err, k.Name)
			require.Contains(t, err.Error(), top+": ", "the error does not name the key")
			require.NotContains(t, err.Error(), "unknown key", k.Name)
		case Ignored:
			require.NoError(t, err, k.Name)
			require.Equal(t, before, after, "%s works, and the list says that it does not", k.Name)
		}
	}
	for _, name := range read {
		require.True(t, known[name], "%s is read, and not in the list", name)
	}
	for name := range known {
		require.True(t, slices.Contains(read, name), "%s is in the list, and nobody reads it", name)
	}
}
