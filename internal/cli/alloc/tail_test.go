package alloc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLastLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		lines int
		want  string
	}{
		{"", 3, ""}, {"a\nb\nc\n", 2, "b\nc\n"}, {"a\nb\nc", 2, "b\nc"}, {"a\nb\n", 2, "a\nb\n"}, {"a\nb\n", 9, "a\nb\n"}, {"\n\n\n", 1, "\n"},
	} {
		require.Equal(t, c.want, string(lastOf([]byte(c.text), c.lines)), "%q", c.text)
	}
}
