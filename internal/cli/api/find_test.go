package api

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

func TestPick(t *testing.T) {
	t.Parallel()
	self := func(s string) string { return s }
	list := []string{"web", "web-2", "api"}
	got, err := Pick("job", "web", list, self, self)
	require.NoError(t, err)
	require.Equal(t, "web", got, "an exact match wins")
	got, err = Pick("job", "a", list, self, self)
	require.NoError(t, err)
	require.Equal(t, "api", got)
	_, err = Pick("job", "we", list, self, self)
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	require.ErrorContains(t, err, "2 jobs begin with \"we\":\n  web  web\n  web-2  web-2")
	_, err = Pick("job", "x", list, self, self)
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
}
