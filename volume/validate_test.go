package volume

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What a volume can be called is what this expression says.
func TestVolumeNames(t *testing.T) {
	t.Parallel()
	says := regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,127}(\[[0-9]{1,6}\])?$`)
	rapid.Check(t, func(rt *rapid.T) {
		short, long := rapid.StringMatching(`[aZ0_.ü -]{0,3}(\[?[01a]{0,7}\]?){0,2}`), rapid.StringMatching(`[a-c]{126,130}(\[0\])?`)
		s := rapid.OneOf(short, long).Draw(rt, "name")
		require.Equal(t, says.MatchString(s), isVolumeName(s), "%q", s)
	})
}
