package network

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What names of networks, of their arguments and of hosts are is what these expressions say.
func TestNamesOfNetworks(t *testing.T) {
	t.Parallel()
	for says, is := range map[string]func(string) bool{
		`^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`:                   isCNIName,
		`^[a-zA-Z_][a-zA-Z0-9_.-]*$`:                     isCNIKey,
		`^[a-zA-Z0-9]([a-zA-Z0-9.-]{0,61}[a-zA-Z0-9])?$`: isHostName,
	} {
		wanted := regexp.MustCompile(says)
		rapid.Check(t, func(rt *rapid.T) {
			short, long := rapid.StringMatching(`[aZ0_.ü; -]{0,4}`), rapid.StringMatching(`[a-c]{61,64}[.0-]?`)
			s := rapid.OneOf(short, long).Draw(rt, "name")
			require.Equal(t, wanted.MatchString(s), is(s), "%q by %s", s, says)
		})
	}
}
