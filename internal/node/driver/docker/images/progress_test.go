package images

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/moby/moby/api/types/jsonstream"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
)

func TestProgressIsToldNowAndThen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProgress(clock.Wall{})
		layer := func(id, status string, current, total int64) string {
			return p.note(jsonstream.Message{ID: id, Status: status, Progress: &jsonstream.Progress{Current: current, Total: total}})
		}
		require.Empty(t, layer("a", "Downloading", 1e6, 4e6))
		require.Empty(t, layer("b", "Already exists", 0, 0))
		require.Empty(t, p.note(jsonstream.Message{Status: "Pulling from library/x"}), "it is of no layer")
		time.Sleep(progressEvery)
		require.Equal(t, "1 of 2 layers, 2.0 of 4.0 MB", layer("a", "Downloading", 2e6, 4e6))
		require.Empty(t, layer("a", "Pull complete", 0, 0))
	})
}
