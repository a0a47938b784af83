package nodes

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// Nodes are told of a server that stands still, by each of the others, and of no other: neither of one that is gone, nor of one that
// answers.
func TestWhoStandsStillIsSuspected(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	still, gone := w.list[2], w.list[1]
	still.stands = make(chan struct{})
	defer close(still.stands)
	gone.self.Address = "127.0.0.1:1" // where nobody listens
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.list[0].Watch(ctx) }() // ends with cancel
	require.Equal(t, "c", <-w.list[0].suspects)
	cancel()
	require.NoError(t, <-ended)
	require.Empty(t, w.list[0].suspects, "not again at once")
}
