package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

func TestTheBrakeGrowsWithEachWave(t *testing.T) {
	t.Parallel()
	last := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		count, places int
		want          time.Duration // 0 = not at all
	}{
		{0, 3, 0},
		{5, 3, 0},
		{6, 3, time.Second},
		{10, 3, time.Second},
		{11, 3, 2 * time.Second},
		{36, 3, time.Minute},
		{1_000_000, 3, time.Minute},
		{200, 200, 0},
		{201, 200, time.Second},
		{401, 200, 2 * time.Second},
		{6, 0, time.Second},
	} {
		want := time.Time{}
		if c.want > 0 {
			want = last.Add(c.want)
		}
		require.Equal(t, want, braked(drover.QuickEnds{Count: c.count, Last: last.UnixNano()}, c.places), "%+v", c)
	}
}
