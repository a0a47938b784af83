package native_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// TestObserversAndTimes: who observes reads the same, is refused more, and learns when it came.
func TestObserversAndTimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x, err := w.StartExecution(t.Context(), w.claim().ID, execution.Request{Command: "echo one;err two", Spec: execution.Spec{Detach: -1}})
	require.NoError(t, err)
	_, err = w.WaitExecution(t.Context(), x.ID)
	require.NoError(t, err)
	s, err := w.Observe(t.Context(), x.ID, execution.Offsets{Stdout: 1})
	require.NoError(t, err)
	var said strings.Builder
	for {
		f, err := s.Next(t.Context())
		require.NoError(t, err)
		if f.Receipt != nil {
			break
		}
		said.Write(f.Data)
	}
	require.NoError(t, s.Close())
	require.Equal(t, "ne\ntwo\n", said.String())
	times, err := w.Timeline(t.Context(), x.ID)
	require.NoError(t, err)
	require.Len(t, times.Marks, 2)
	require.Equal(t, int64(4), times.Marks[0].End)
	_, body := w.raw("GET", "/v1/execution/"+x.ID+"/output?observe=true", "")
	require.Equal(t, "one\n", body)
	res, body := w.raw("GET", "/v1/execution/"+x.ID+"/output?observe=perhaps", "")
	require.Equal(t, http.StatusBadRequest, res.StatusCode)
	require.Contains(t, body, "observe")
	_, err = w.Timeline(t.Context(), "none")
	require.Equal(t, drover.NotFound, code(err))
}
