package timeline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover/execution"
)

// TestTimelinesStayTrueAndSmall compares timelines with a list of all that happened: no byte came before its mark, or later than the
// resolution says, the last marks tell of everything, and there is a bound.
func TestTimelinesStayTrueAndSmall(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var line Timeline
		var all []Mark
		ends, at := [2]int64{}, time.Duration(0)
		longest := rapid.Int64Range(1, int64(time.Second)).Draw(t, "longest")
		for range rapid.SampledFrom([]int{0, 10, 3 * maxMarks}).Draw(t, "writes") {
			at += time.Duration(longest * int64(len(all)%7) / 6)
			s := execution.Stream(1 + (len(all)/3)%2)
			ends[s-1] += int64(1 + len(all)%5)
			all = append(all, Mark{at, ends[s-1], s})
			line.Note(at, s, ends[s-1])
		}
		require.LessOrEqual(t, len(line.marks), maxMarks)
		for _, s := range []execution.Stream{execution.Stdout, execution.Stderr} {
			of := func(list []Mark) (own []Mark) {
				for _, m := range list {
					if m.Stream == s {
						own = append(own, m)
					}
				}
				return own
			}
			told, truth := of(line.marks), of(all)
			require.Equal(t, len(truth) > 0, len(told) > 0)
			i := 0
			for _, m := range truth { // the mark that tells of a write first
				for told[i].End < m.End {
					i++
				}
				if late := m.At - told[i].At; late < 0 || late >= line.Resolution() {
					t.Fatalf("a mark is %v before what it tells of, of %v", late, line.Resolution())
				}
			}
		}
	})
}
