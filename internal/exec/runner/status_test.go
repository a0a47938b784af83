package runner

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCounted(t *testing.T) {
	t.Parallel()
	require.Empty(t, counted(nil))
	require.Equal(t, "cpu: 2, memory: 1", counted(map[string]int{"memory": 1, "cpu": 2}))
}
