package poseidon_test

import (
	"testing"

	"github.com/drover-project/drover/internal/httpapi/poseidon"
)

func TestTranscripts(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]poseidon.Config{
		"environments": {},
		"runners":      {},
		"files":        {},
		"status":       {Version: "v1.2.3", PrewarmingThreshold: 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newWorld(t, cfg, "").transcript(name)
		})
	}
	t.Run("token", func(t *testing.T) {
		t.Parallel()
		newWorld(t, poseidon.Config{}, "secret").transcript("token")
	})
}
