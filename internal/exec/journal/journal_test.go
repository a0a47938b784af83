package journal

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover/execution"
)

// wrote is a stupid journal: all bytes of a stream, and where what is kept begins. What was never delivered is 0.
type wrote struct {
	all   []byte
	start int64
}

// TestAJournalIsWhatArrived compares with all that arrived, whatever was delivered twice, skipped by the node or dropped here.
func TestAJournalIsWhatArrived(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var j Journal
		model := map[execution.Stream]*wrote{execution.Stdout: {}, execution.Stderr: {}}
		kinds := rapid.SampledFrom([]execution.Stream{execution.Stdout, execution.Stderr})
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			s := kinds.Draw(t, "stream")
			m, l := model[s], j.Of(s)
			if rapid.IntRange(0, 5).Draw(t, "trim") == 0 {
				keep := rapid.Int64Range(0, int64(len(m.all))).Draw(t, "keep")
				l.Trim(keep)
				require.LessOrEqual(t, l.Start(), max(keep, m.start), "more than was asked for went")
				m.start = l.Start()
				continue
			}
			at := max(0, int64(len(m.all))+rapid.Int64Range(-20, 5).Draw(t, "from"))
			data := rapid.SliceOfN(rapid.Byte(), 1, 100).Draw(t, "data")
			if again := int64(len(m.all)) - at; again > 0 { // what is delivered again is what it was
				n := copy(data, m.all[at:])
				data = append(data[:n], data[n:]...)
			}
			j.Add(s, at, data)
			if end := int64(len(m.all)); at > end {
				m.all, m.start = append(m.all, make([]byte, at-end)...), at
			}
			m.all = append(m.all[:at], append(data, m.all[min(int64(len(m.all)), at+int64(len(data))):]...)...)
		}
		var kept int64
		for s, m := range model {
			l := j.Of(s)
			require.Equal(t, [2]int64{m.start, int64(len(m.all))}, [2]int64{l.Start(), l.End()})
			got, last := []byte{}, uint64(0)
			for at := l.Start(); ; {
				seq, data := l.At(at)
				if data == nil {
					break
				}
				require.Greater(t, seq, last, "out of order")
				last, at, got = seq, at+int64(len(data)), append(got, data...)
			}
			require.Equal(t, string(m.all[m.start:]), string(got))
			kept += l.End() - l.Start()
		}
		require.Equal(t, kept, j.Bytes())
	})
}

// Readers have pieces of the journal in their hands while it goes on.
func TestWhatAReaderGotStaysAsItIs(t *testing.T) {
	t.Parallel()
	var j Journal
	j.Add(execution.Stdout, 0, []byte("abc"))
	_, got := j.Of(execution.Stdout).At(1)
	j.Add(execution.Stdout, 3, []byte("def"))
	_ = append(got, 'x')
	_, all := j.Of(execution.Stdout).At(0)
	require.Equal(t, "abcdef", string(all), "many small writes are one piece")
	require.Equal(t, "bc", string(got))
}

func TestStreamsKeepTheirOrderAndTimes(t *testing.T) {
	t.Parallel()
	var j Journal
	j.Add(execution.Stdout, 0, []byte("a"))
	j.Note(time.Second, execution.Stdout)
	j.Add(execution.Stderr, 0, []byte("b"))
	j.Add(execution.Stdout, 1, []byte("c"))
	first, _ := j.Of(execution.Stdout).At(0)
	second, _ := j.Of(execution.Stderr).At(0)
	third, _ := j.Of(execution.Stdout).At(1)
	require.Less(t, first, second)
	require.Less(t, second, third)
	require.Len(t, j.Times().Marks(), 1)
	require.EqualValues(t, 1, j.Times().Marks()[0].End)
	var lost Journal
	lost.Of(execution.Stderr).Lost(7)
	require.Equal(t, [2]int64{7, 7}, [2]int64{lost.Of(execution.Stderr).Start(), lost.Of(execution.Stderr).End()})
	require.Zero(t, lost.Bytes())
}
