package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// A job waits for a node of a cloud's region until the node has asked its cloud, which answers late.
func TestANodeKnowsItsCloud(t *testing.T) {
	asked := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := map[string]string{"/id": "4711", "/region": "fra1"}[r.URL.Path]
		if answer == "" {
			http.NotFound(w, r)
			return
		}
		select {
		case <-asked:
			_, _ = w.Write([]byte(answer))
		case <-r.Context().Done():
		}
	}))
	defer s.Close()
	t.Setenv("DO_ENV_URL", s.URL)
	fingerprint := clientBlock("fingerprint \"env_digitalocean\" {\n  retry_interval = \"10ms\"\n  retry_attempts = -1\n}\n")
	c := start(t, append([]string{"-dev"}, config(t, "", fingerprint)...)...).nomad()
	job := rawJob("there", "batch", "/bin/sh", "-c", "echo ${attr.unique.platform.digitalocean.id}")
	job.Constrain(api.NewConstraint("${attr.platform.digitalocean.region}", "=", "fra1"))
	eventually(t, "the node", func() (bool, string) {
		nodes, _, err := c.Nodes().List(nil)
		return err == nil && len(nodes) == 1 && nodes[0].Status == "ready", fmt.Sprint(nodes, err)
	})
	missing := refusal(t, c, job)
	require.Equal(t, map[string]int{"${attr.platform.digitalocean.region} = fra1": 1}, missing.ConstraintFiltered)
	close(asked)
	alloc := allocation(t, c, "there", "complete")
	require.Equal(t, "4711\n", logs(t, c, alloc.ID, "stdout"))
	node, _, err := c.Nodes().Info(alloc.NodeID, nil)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"digitalocean": "4711"}, node.Links)
}
