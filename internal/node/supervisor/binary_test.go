package supervisor

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// A supervisor stands beside each task and each warm runner: what its packages allocate when it starts is there as often. Two regular
// expressions of the vocabulary once doubled its memory.
func TestASupervisorAllocatesLittleWhenItStarts(t *testing.T) {
	t.Parallel()
	path, err := Binary(t.TempDir())
	require.NoError(t, err)
	start := exec.CommandContext(t.Context(), path) // it is told nothing, and ends with an error
	start.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, _ := start.CombinedOutput()
	found := regexp.MustCompile(`(?m)^init (\S+) .* (\d+) bytes`).FindAllSubmatch(out, -1)
	require.NotEmpty(t, found, string(out))
	sum := 0
	for _, m := range found {
		n, err := strconv.Atoi(string(m[2]))
		require.NoError(t, err)
		sum += n
	}
	require.Less(t, sum, 16<<10, string(out))
}
