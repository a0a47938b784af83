package native

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/httpapi"
)

// A claim's body is read as any other is, whichever way it takes.
func TestReadClaim(t *testing.T) {
	t.Parallel()
	same := func(t require.TestingT, text string) {
		var want ClaimBody
		wantErr := httpapi.DecodeStrictJSON(httptest.NewRequest("POST", "/", strings.NewReader(text)), &want)
		got, err := readClaim(httptest.NewRequest("POST", "/", strings.NewReader(text)))
		if wantErr != nil {
			require.EqualError(t, err, wantErr.Error(), text)
			return
		}
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{
		``, ` `, `{`, `{}`, `null`, `{"environment":"a"}`, "{\"environment\":\"a\"}\n",
		`{"environment":""}`, `{"environment":"a"`, `{"environment":"a}`,
		`{"environment":"a","x":1}`, `{"environment":"a"} {}`,
		`{"environment":"a\"}`, `{"environment":"a\u0000"}`, "{\"environment\":\"a\x01\"}",
		"{\"environment\":\"\xff\"}", `{"environment":"é"}`, `{"environment":"a"}"}`, `{"environment":1}`, `{"environment":"a","wait":"1s"}`,
		`{"environment":"` + strings.Repeat("a", maxPlainBody) + `"}`,
	} {
		same(t, text)
	}
	piece := rapid.SampledFrom([]string{
		`{"environment":"`, `"}`, "a", "b-1", `"`, `\`, `\"`, "\n", " ",
		`,"labels":{"a":"b"}`, `","labels":{"a":"b"}}`, "é", "\x80", "\x7f", "{}", `\u0041`,
	})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 6).Draw(t, "pieces"), "")
		if rapid.Bool().Draw(t, "begun") {
			text = `{"environment":"` + text + `"}`
		}
		same(t, text)
	})
}
