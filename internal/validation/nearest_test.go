package validation

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatWasMistyped(t *testing.T) {
	t.Parallel()
	known := []string{"namespace", "node", "data_dir", "tls", "image", "images"}
	for word, want := range map[string]string{
		"namespaec": "namespace", "Namespace": "namespace", "nmspace": "namespace", "namesp": "namespace", "data_dri": "data_dir",
		"data-dir": "data_dir", "imag": "image", "nod": "node", "ndoe": "node", "tsl": "tls",
		"": "", "x": "", "no": "", "tux": "", "colour": "", "namespaces_of_all": "",
	} {
		require.Equal(t, want, Nearest(word, known), word)
	}
	require.Zero(t, distance("", ""))
	require.Equal(t, 3, distance("abc", ""))
	require.Equal(t, 3, distance("kitten", "sitting"))
	require.Equal(t, 1, distance("ab", "ba"))
}
