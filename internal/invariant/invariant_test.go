package invariant_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/invariant"
)

func TestABreachPanicsInTests(t *testing.T) {
	before := invariant.Breaches()
	require.PanicsWithValue(t, "invariant 4 (handed out once): a-1: twice in 2s", func() {
		invariant.Breach(invariant.HandedOutOnce, "a-1", "twice in %ds", 2)
	})
	require.Equal(t, before+1, invariant.Breaches())
}

// TestTheTenOfArchitecture: the numbers are those of the list that people read.
func TestTheTenOfArchitecture(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "ARCHITECTURE.md"))
	require.NoError(t, err)
	_, list, found := strings.Cut(string(text), "## Invariants")
	require.True(t, found)
	words := []string{
		"acknowledged write", "two nodes", "capacity", "handed out at most once", "arrive before its exit", "outlives",
		"is reported as exit 0", "busy instance", "owned or destroyed", "Event indexes increase",
	}
	for n := invariant.AcknowledgedWrites; n <= invariant.EventsIncrease; n++ {
		at := strings.Index(list, words[n-1])
		require.GreaterOrEqual(t, at, 0, "%d: %s", n, n)
		list = list[at:]
		require.NotContains(t, n.String(), "invariant", "%d has a name", n)
	}
	require.Equal(t, "invariant 11", (invariant.EventsIncrease + 1).String())
}

// TestTheProductCountsAndLogs runs a program that is no test.
func TestTheProductCountsAndLogs(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it compiles a program")
	}
	cmd := exec.Command("go", "run", "./testdata/breaching")
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	require.NoError(t, cmd.Run(), log.String())
	require.Equal(t, "3000\n", out.String(), "all are counted")
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	require.Len(t, lines, 103, "a hundred, and each thousandth")
	for _, word := range []string{"level=ERROR", "invariant=3", `name="within capacity"`, "subject=node-7", "detail=\"7 of 5\""} {
		require.Contains(t, lines[0], word)
	}
}
