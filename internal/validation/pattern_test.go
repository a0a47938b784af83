package validation

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCompilePattern(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "^a.*[0-9]{1,3}$", `\d{4}-(a|b){20}`, "(?i)linux|windows", `\p{L}{100}`} {
		re, err := CompilePattern(text)
		require.NoError(t, err, text)
		require.Equal(t, text, re.String())
	}
	for text, says := range map[string]string{
		strings.Repeat("x{1000}", 500): "its repetitions make more than",
		`(a{10}b{10}c{30}){30}((a{10}){10}){10}(x{5}y{20}){40}` +
			`(z{990}){1}((abcdefghij){100}){9}((abcdefghij){100}){9}`: "its repetitions make more than",
		`(\pL{100}){10}(\pL{100}){10}x{20000}`: "invalid repeat count",
		strings.Repeat("a", 5000):              "longer than 4096 bytes",
		"(":                                    "missing closing",
		strings.Repeat("(", 2000) + "a{1000}" + strings.Repeat("){1000}", 250): "",
	} {
		_, err := CompilePattern(text)
		require.ErrorContains(t, err, says)
	}
}
