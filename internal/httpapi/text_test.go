package httpapi

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestTextIsTakenAsItIs(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{
		"": true, `{"a":"ä€😀"}`: true, "\"\xff\"": false, "\"\xe2\x82": false, "\"\xed\xa0\x80\"": false,
		`"\ud83d\ude00"`: true, `"\uD83D\uDE00x\u0041"`: true, `"\ud83d"`: false, `"\ud83dx"`: false, `"\ud83d\n"`: false,
		`"\ude00"`: false, `"\ud83d\ud83d\ude00"`: false, `"\\ud83d"`: true, `"\\\ud83d"`: false, `"\"\u00e4\\"`: true,
	} {
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(text), "bytewise": iotest.OneByteReader(strings.NewReader(text))} {
			got, err := io.ReadAll(&textReader{r: r})
			if !good {
				require.ErrorIs(t, err, errNotText, "%s %q", name, text)
				continue
			}
			require.NoError(t, err, "%s %q", name, text)
			require.Equal(t, text, string(got), name)
		}
	}
}
