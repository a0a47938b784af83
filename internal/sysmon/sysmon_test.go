package sysmon_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/sysmon"
)

func TestRelaxChangesAThread(t *testing.T) { // threads begin and end in other tests
	sysmon.Relax()
	tasks, err := filepath.Glob("/proc/self/task/*")
	require.NoError(t, err)
	slices.Sort(tasks)
	calm := 0
	for _, task := range tasks {
		text, err := os.ReadFile("/proc/" + filepath.Base(task) + "/timerslack_ns")
		require.NoError(t, err)
		if string(text) == "1000000\n" {
			calm++
		}
	}
	require.GreaterOrEqual(t, calm, 1) // those that it makes inherit it
}
