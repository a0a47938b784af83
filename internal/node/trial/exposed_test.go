package trial

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A guest that does not show what its root may do has not been found without rights.
func TestRightsThatAreNotSeenAreNotHeld(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]struct {
		has   []string
		known bool
	}{
		"Name:\tcat\nNoNewPrivs:\t1\nCapBnd:\t0000000000000000\n": {nil, true},
		"CapBnd:\t0000000000200000\nNoNewPrivs:\t0\n":             {[]string{"sys_admin", "set-user-id programs have their effect"}, true},
		"":                             {nil, false},
		"NoNewPrivs:\t1\n":             {nil, false},
		"NoNewPrivs:\t1\nCapBnd:\t-\n": {nil, false},
		"CapBnd:\t0000000000000000\n":  {nil, false},
	} {
		has, known := rightsOf(status)
		require.Equal(t, want.has, has, status)
		require.Equal(t, want.known, known, status)
	}
}
