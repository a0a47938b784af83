package static

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestVendoredFilesAreWhatTheManifestSays compares what others wrote with the hashes of it.
func TestVendoredFilesAreWhatTheManifestSays(t *testing.T) {
	t.Parallel()
	manifest, err := files.ReadFile(vendorDir + "/MANIFEST")
	require.NoError(t, err)
	listed := map[string]bool{}
	for line := range strings.Lines(string(manifest)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		require.Len(t, words, 6, line)
		listed[words[0]+".gz"], listed[words[0]+".LICENSE"] = true, true
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, Address(words[0]).String(), http.NoBody)
		r.SetPathValue("name", words[0])
		Serve(w, r)
		require.Equal(t, http.StatusOK, w.Code)
		require.NotEmpty(t, w.Header().Get("Content-Type"))
		sum := sha256.Sum256(w.Body.Bytes())
		require.Equal(t, words[4], hex.EncodeToString(sum[:]), words[0])
	}
	entries, err := files.ReadDir(vendorDir)
	require.NoError(t, err)
	for _, e := range entries {
		require.True(t, listed[e.Name()] || e.Name() == "MANIFEST", e.Name())
	}
}
