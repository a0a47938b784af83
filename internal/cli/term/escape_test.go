package term

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEscapes(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"ls\r":           "ls\r",
		"~.":             "|left",
		"ls\r~.more":     "ls\r|left",
		"ls\r\n~.":       "ls\r\n|left",
		"cd ~.":          "cd ~.",
		"~~.":            "~.",
		"~~\r~":          "~\r",
		"~x":             "~x",
		"~\r~.":          "~\r|left",
		"a~.\r~/x\r~~~.": "a~.\r~/x\r~~.",
		"\x00.":          "\x00.",
	} {
		for _, atOnce := range []bool{true, false} {
			var got string
			k := Keys{Escape: '~', Send: func(p []byte) error { got += string(p); return nil }, Leave: func() { got += "|left" }}
			size := 1
			if atOnce {
				size = len(typed)
			}
			for part := range slices.Chunk([]byte(typed), size) {
				if err := k.Type(part); err != nil {
					require.ErrorIs(t, err, errLeft)
					break
				}
			}
			require.Equal(t, want, got, "%q", typed)
		}
	}
	var e Escape
	require.NoError(t, e.Set("none"))
	require.Equal(t, "none", e.String())
	k := Keys{Escape: e, Send: func(p []byte) error { require.Equal(t, "\r~.\x00.", string(p)); return nil }}
	require.NoError(t, k.Type([]byte("\r~.\x00.")))
	for _, bad := range []string{"", "..", ".", "~~", "ä", "\n"} {
		require.Error(t, e.Set(bad), bad)
	}
}
