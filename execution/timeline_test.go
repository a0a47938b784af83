package execution_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover/execution"
)

// TestPiecesAreTheOutput: whatever the marks say, and whatever is kept, put together the pieces are the output, and none is before the
// one before it.
func TestPiecesAreTheOutput(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		times := execution.Timeline{Ended: time.Duration(rapid.Int64Range(0, 100).Draw(t, "ended"))}
		at := time.Duration(0)
		for range rapid.IntRange(0, 20).Draw(t, "marks") {
			at += time.Duration(rapid.Int64Range(0, 10).Draw(t, "later"))
			times.Marks = append(times.Marks, execution.Mark{
				At: at, Stream: rapid.SampledFrom([]string{"stdout", "stderr", "other"}).Draw(t, "stream"),
				End: rapid.Int64Range(-3, 60).Draw(t, "end"),
			})
		}
		from := execution.Offsets{Stdout: rapid.Int64Range(0, 30).Draw(t, "from"), Stderr: rapid.Int64Range(0, 30).Draw(t, "from")}
		content := map[string][]byte{"stdout": rapid.SliceOf(rapid.Byte()).Draw(t, "out"), "stderr": rapid.SliceOf(rapid.Byte()).Draw(t, "err")}
		got, last := map[string][]byte{}, time.Duration(0)
		for _, p := range times.Pieces(from, content["stdout"], content["stderr"]) {
			require.GreaterOrEqual(t, p.At, last)
			require.NotEmpty(t, p.Data)
			got[p.Stream], last = append(got[p.Stream], p.Data...), p.At
		}
		for stream, want := range content {
			require.True(t, bytes.Equal(want, got[stream]), stream)
		}
	})
}

// TestCasts: each line is JSON, characters that came in two pieces are whole, and both streams are there in their order.
func TestCasts(t *testing.T) {
	t.Parallel()
	times := execution.Timeline{StartedAt: time.Unix(100, 0), Ended: 2 * time.Second, Marks: []execution.Mark{
		{At: 10 * time.Millisecond, Stream: "stdout", End: 3},
		{At: time.Second, Stream: "stderr", End: 2},
		{At: 1500 * time.Millisecond, Stream: "stdout", End: 6},
	}}
	pieces := times.Pieces(execution.Offsets{}, []byte("gr\xc3\xbcn\n\xff"), []byte("e\n"))
	var out strings.Builder
	spec := execution.Spec{Argv: []string{"sh", "</script>"}}
	require.NoError(t, execution.WriteCast(&out, &times, &spec, pieces))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.JSONEq(t, `{"version": 2, "width": 80, "height": 24, "timestamp": 100, "title": "sh </script>"}`, lines[0])
	require.Equal(t, []string{
		`[0.01,"o","gr"]`, `[1,"o","e\r\n"]`, `[1.5,"o","ün\r\n"]`, `[2,"o","` + "\\ufffd" + `"]`,
	}, lines[1:])
	out.Reset()
	spec.TTY, spec.Size = true, execution.WindowSize{Rows: 10, Cols: 20}
	require.NoError(t, execution.WriteCast(&out, &times, &spec, pieces[:1]))
	require.Contains(t, out.String(), `"width":20,"height":10`)
	require.True(t, json.Valid([]byte(strings.Split(out.String(), "\n")[1])))
}
