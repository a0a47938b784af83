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

// TestWhatPagesMayLoadIsSaidByTheConfiguration: a directive that it names has its sources, and the agent itself stays allowed where it was.
func TestWhatPagesMayLoadIsSaidByTheConfiguration(t *testing.T) {
	t.Parallel()
	said := func(s Sources, terminal bool) (policy, frames string) {
		h := http.Header{}
		s.Protect(h, terminal)
		return h.Get("Content-Security-Policy"), h.Get("X-Frame-Options")
	}
	policy, frames := said(nil, false)
	require.Equal(t, ContentPolicy, policy)
	require.Equal(t, "DENY", frames)
	policy, _ = said(Sources{"style-src": {"'none'"}, "form-action": {"'none'"}, "frame-ancestors": {"'none'"}}, true)
	require.Equal(t, strings.Replace(ContentPolicy, "style-src 'self'", "style-src 'self' 'unsafe-inline'", 1), policy)
	policy, frames = said(Sources{
		"frame-ancestors": {"'self'", "https://portal.example"}, "img-src": {"data:", "'self'"}, "default-src": {"https:"},
		"style-src": {"'unsafe-inline'"},
	}, true)
	require.Equal(t, "default-src https:; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "+
		"form-action 'self'; frame-ancestors 'self' https://portal.example; base-uri 'none'", policy)
	require.Empty(t, frames, "it knows no list")
}
