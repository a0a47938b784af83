package sandbox

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/image"
)

func TestPullsAreTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var said []string
		tell := pullTeller(clock.Wall{}, &driver.Spec{Tell: func(m string) { said = append(said, m) }}, "x:1")
		tell(image.Progress{})
		for i := range 90 {
			time.Sleep(time.Second)
			tell(image.Progress{Layers: 3, LayersDone: i / 30, Bytes: int64(i) << 20})
		}
		require.Equal(t, []string{
			"Downloading image x:1", "Downloading image x:1: 0 of 3 layers, 30.4 MB unpacked",
			"Downloading image x:1: 1 of 3 layers, 61.9 MB unpacked",
			"Downloading image x:1: 2 of 3 layers, 93.3 MB unpacked",
		}, said)
	})
}
