package jsontext_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/jsontext"
)

// plain is what encoding/json writes without escaping HTML.
func plain(t require.TestingT, v any) string {
	var want bytes.Buffer
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(v))
	return strings.TrimSuffix(want.String(), "\n")
}

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain", "a\"b\\c\n\r\t\b\f\x00\x1f\x7f", "<&>ä€😀\u2028\u2029\ufffd", "\xff\xc3", "end\xe2\x82"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		want := plain(t, string(text))
		require.Equal(t, want, string(jsontext.AppendString(nil, text)))
		require.Equal(t, want, string(jsontext.AppendString(nil, string(text))))
	})
}

func TestAppendMapWritesWhatTheStandardLibraryWrites(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.Make[map[string]string]().Draw(t, "map")
		require.Equal(t, plain(t, m), string(jsontext.AppendMap(nil, m)))
	})
	require.Equal(t, "null", string(jsontext.AppendMap(nil, nil)))
}
