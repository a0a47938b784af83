package validation

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIDs(t *testing.T) {
	t.Parallel()
	ids, err := ParseIDs("0, 10-15,22,4294967295")
	require.NoError(t, err)
	for id, has := range map[uint32]bool{0: true, 1: false, 9: false, 10: true, 15: true, 16: false, 22: true, 4294967295: true} {
		require.Equal(t, has, ids.Has(id), id)
	}
	ids, err = ParseIDs(" ")
	require.NoError(t, err)
	require.False(t, ids.Has(0))
	for _, wrong := range []string{"x", "1,", "5-2", "-1", "1-2-3", "4294967296"} {
		_, err := ParseIDs(wrong)
		require.Error(t, err, wrong)
	}
}

func TestChrootPaths(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		trees map[string]string
		says  string
	}{
		{map[string]string{"usr": "/usr"}, `"usr" is not an absolute path`},
		{map[string]string{"/": "/x"}, `"/" is not an absolute path`},
		{map[string]string{"/usr": "usr"}, `"usr" is not an absolute path`},
		{map[string]string{"/usr": "/a/../b"}, "without dots"},
		{map[string]string{"/proc": "/proc"}, "a task has a /proc of its own"},
		{map[string]string{"/srv": "/local/x"}, "a task has a /local of its own"},
		{map[string]string{"/usr": "/x", "/etc": "/x"}, `"/etc" and "/usr" are to be seen at the same path`},
	} {
		require.ErrorContains(t, ChrootPaths(c.trees), c.says)
	}
	require.NoError(t, ChrootPaths(map[string]string{"/usr": "/usr", "/opt/x": "/bin/x"}))
}
