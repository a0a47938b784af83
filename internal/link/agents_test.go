package link

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// Control asks the agent of a node through its tunnel, beside the workloads.
func TestControlAsksTheAgentOfANode(t *testing.T) {
	t.Parallel()
	w := &world{}
	c, nodes := serve(t, w)
	_, err := nodes.Agent("n1")
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	c.faces = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "asked for "+r.URL.Path)
	})
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- c.ServeWorkloads(ctx, w, func(string) { close(ready) }) }() // ends with cancel
	<-ready
	var agent http.RoundTripper
	require.Eventually(t, func() bool { agent, err = nodes.Agent("n1"); return err == nil }, time.Minute, time.Millisecond)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://node/v1/agent/host", nil)
	require.NoError(t, err)
	res, err := agent.RoundTrip(r)
	require.NoError(t, err)
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, "asked for /v1/agent/host", string(text))
	cancel()
	<-ended
}
