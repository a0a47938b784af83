package lazyregexp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/lazyregexp"
)

func TestNew(t *testing.T) {
	t.Parallel()
	get := lazyregexp.New(`^[a-z]+$`)
	require.True(t, get().MatchString("abc"))
	require.False(t, get().MatchString("a1"))
	require.Same(t, get(), get())
	require.Panics(t, func() { lazyregexp.New(`(`) }, "tests find what is no expression")
}
