package cluster

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

func TestAServerAloneHasNoGossip(t *testing.T) {
	t.Parallel()
	alone := serverText(0, []string{"127.0.0.1:1"}, "127.0.0.1:2")
	require.Contains(t, alone, "rpc = 2\n")
	require.NotContains(t, alone, "serf")
	require.NotContains(t, alone, "bootstrap_expect")
	second := serverText(1, []string{"127.0.0.1:1", "127.0.0.1:3", "127.0.0.1:5"}, "127.0.0.1:4")
	require.Contains(t, second, "serf = 3\n")
	require.Contains(t, second, "bootstrap_expect = 3\n")
	require.Contains(t, second, `retry_join = ["127.0.0.1:1", "127.0.0.1:5"]`)
}

// TestAWriteThatWasSentBeforeTheLeaderDiedIsNoProof: it may have been carried out by the dead one.
func TestAWriteThatWasSentBeforeTheLeaderDiedIsNoProof(t *testing.T) {
	t.Parallel()
	died := time.Unix(100, 0)
	acks := make(chan ack, 2)
	acks <- ack{died.Add(-time.Second), died.Add(time.Second)}
	acks <- ack{died.Add(time.Second), died.Add(3 * time.Second)}
	took, err := firstAfter(t.Context(), acks, died)
	require.NoError(t, err)
	require.Equal(t, 3*time.Second, took)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = firstAfter(ended, acks, died)
	require.ErrorIs(t, err, context.Canceled)
}

func TestSimulatedNodesHaveRoom(t *testing.T) {
	t.Parallel()
	n := simulated(7, "id", "secret")
	require.Equal(t, "node-00007", n.Name)
	require.True(t, n.Drivers["mock_driver"].Healthy)
	require.Positive(t, n.NodeResources.Cpu.CpuShares)
	require.Equal(t, drover.DefaultNodePool, n.NodePool)
}

// A process of simulated nodes keeps profiles as it is told, until the bench is gone.
func TestProfilesOnRequest(t *testing.T) {
	name := filepath.Join(t.TempDir(), "job-nodes0")
	var told bytes.Buffer
	n := &Nodes{inputs: []io.WriteCloser{keptOpen{&told}}}
	require.NoError(t, n.Profile(filepath.Dir(name), "job"))
	require.NoError(t, n.Profiled())
	require.NoError(t, Obey(&told))
	info, err := os.Stat(name + ".cpu.prof")
	require.NoError(t, err)
	require.Positive(t, info.Size())
	require.Error(t, Obey(strings.NewReader("profile "+filepath.Join(name, "no", "folder"))))
}

type keptOpen struct{ io.Writer }

func (keptOpen) Close() error { return nil }
