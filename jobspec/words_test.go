package jobspec_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/jobspec"
)

func TestWordsAreWhatTheDecoderTakes(t *testing.T) {
	t.Parallel()
	words := jobspec.Words()
	find := func(path string) (jobspec.Word, bool) {
		i := slices.IndexFunc(words, func(w jobspec.Word) bool { return w.Path == path })
		if i < 0 {
			return jobspec.Word{}, false
		}
		return words[i], true
	}
	for path, block := range map[string]bool{
		"priority": false, "group.count": false, "group.task.driver": false, "group.task.config": false, "group.task.template.data": false,
		"group.task.resources.device.count": false, "group.pool.size": false, "group.pool": true, "update": true, "parameterized.payload": false,
	} {
		w, ok := find(path)
		require.True(t, ok, path)
		require.Equal(t, jobspec.Word{Path: path, Block: block}, w)
	}
	refused, ok := find("multiregion")
	require.True(t, ok)
	require.Equal(t, "Register the job in each region.", refused.Refused)
	service, ok := find("group.service")
	require.True(t, ok)
	require.Empty(t, service.Refused, "only its connect block is")
	_, ok = find("task")
	require.False(t, ok)
	require.True(t, slices.IsSortedFunc(words, func(a, b jobspec.Word) int {
		if a.Path < b.Path {
			return -1
		}
		return 1
	}), "no path stands there twice")
}
