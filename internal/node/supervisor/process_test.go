package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
)

func TestEndedSupervisorsAreCollected(t *testing.T) {
	t.Parallel()
	p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
	require.NoError(t, err)
	(&Child{pid: p.Pid, process: p, gone: make(chan struct{})}).reap()
	require.ErrorIs(t, syscall.Kill(p.Pid, 0), syscall.ESRCH)
}

func TestBuryReturnsWhenNothingRuns(t *testing.T) {
	t.Parallel()
	c, state := launch(t, nil)
	require.NoError(t, Bury(t.Context(), state, clock.Wall{}))
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(c.Pid()), "stat"))
	if err == nil { // it is not yet collected, but runs no more
		require.Contains(t, string(status), ") Z ")
	}
	require.NoError(t, Bury(t.Context(), state, clock.Wall{}), "nothing is left to bury")
	require.NoError(t, Bury(t.Context(), t.TempDir(), clock.Wall{}), "nothing ever was")
}

// nap is a command that only this run of the tests has: what a killed one left may still sleep.
func nap(seconds string) []string {
	return []string{"sleep", fmt.Sprintf("%s%08d", seconds, os.Getpid())} // no number is the beginning of another
}

func napping(seconds string) string { return strings.Join(nap(seconds), " ") }

// processesLike lists running processes by their command line.
func processesLike(text string) (found []string) {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, n := range names {
		b, _ := os.ReadFile(n)
		line := strings.ReplaceAll(strings.TrimRight(string(b), "\x00"), "\x00", " ")
		if strings.HasPrefix(line, text) {
			found = append(found, line)
		}
	}
	return found
}
