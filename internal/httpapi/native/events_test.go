package native_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"drover"
)

func TestExecutionEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.claim()
	stream, err := w.ExecutionEvents(t.Context(), 0, r.ID)
	require.NoError(t, err)
	defer stream.Close()
	_, err = w.StartExecution(t.Context(), r.ID, drover.ExecutionRequest{Command: "exit 7"})
	require.NoError(t, err)
	var kinds []string
	var last uint64
	for len(kinds) < 2 {
		events, err := stream.Next()
		require.NoError(t, err)
		for _, e := range events.Events {
			require.Greater(t, e.Index, last)
			last = e.Index
			kinds = append(kinds, e.Type)
		}
	}
	require.Equal(t, []string{"ExecutionStarted", "ExecutionEnded"}, kinds)
	_, err = w.ExecutionEvents(t.Context(), 1, "")
	require.Equal(t, drover.Gone, code(err))
}
