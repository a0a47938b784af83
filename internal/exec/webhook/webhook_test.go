package webhook

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

func TestNotify(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/busy":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/never":
			w.WriteHeader(http.StatusNotFound)
		case "/elsewhere":
			http.Redirect(w, r, "/", http.StatusTemporaryRedirect)
		default:
			text, _ := io.ReadAll(r.Body)
			got <- r.Header.Get("Content-Type") + " " + string(text)
		}
	}))
	defer s.Close()
	p := New(Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	defer p.Close()
	require.NoError(t, p.Notify(t.Context(), s.URL, "x", []byte("{}")))
	require.Equal(t, "application/json {}", <-got)
	for path, want := range map[string]drover.Code{"/busy": drover.Unavailable, "/never": drover.Invalid, "/elsewhere": drover.Invalid} {
		require.Equal(t, want, drover.CodeOf(p.Notify(t.Context(), s.URL+path, "x", nil)), path)
	}
	careful := New(Config{})
	defer careful.Close()
	require.Equal(t, drover.Forbidden, drover.CodeOf(careful.Notify(t.Context(), s.URL, "x", nil)))
	s.Close()
	require.Equal(t, drover.Unavailable, drover.CodeOf(p.Notify(t.Context(), s.URL, "x", nil)))
}

func TestWhatWillBeRefusedIsSaidEarly(t *testing.T) {
	t.Parallel()
	p := New(Config{Allow: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}})
	defer p.Close()
	for url, want := range map[string]drover.Code{
		"http://127.0.0.1:9/x": drover.Forbidden, "https://[::1]/": drover.Forbidden, "http://localhost:1/": drover.Forbidden,
		"http://10.2.0.1/": drover.Forbidden, "http://[64:ff9b::7f00:1]/": drover.Forbidden, "http://[2002:7f00:1::]/": drover.Forbidden,
		"http://192.0.0.192/": drover.Forbidden, "http://198.18.0.1/": drover.Forbidden, "http://240.0.0.1/": drover.Forbidden,
		"http://100.100.100.200/": drover.Forbidden, "http://169.254.169.254/latest": drover.Forbidden,
	} {
		require.Equal(t, want, drover.CodeOf(p.Check(url)), url)
	}
	for _, url := range []string{"http://10.1.0.1:80/", "https://example.org/x", "http://93.184.216.34/"} {
		require.NoError(t, p.Check(url), url)
	}
}
