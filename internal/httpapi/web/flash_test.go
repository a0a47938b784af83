package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/httpapi/web/cookies"
)

// follow opens the page that an answer leads to, as a browser with the answer's cookies does, and returns it.
func follow(t *testing.T, h http.Handler, led *httptest.ResponseRecorder, token string) string {
	t.Helper()
	return open(t, h, led.Header().Get("Location"), token, led.Result().Cookies()).Body.String()
}

// open opens a page with a token and more cookies.
func open(t *testing.T, h http.Handler, path, token string, more []*http.Cookie) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost:4646"+path, http.NoBody)
	if token != "" {
		w := httptest.NewRecorder()
		cookies.SetToken(w, r, token)
		r.AddCookie(w.Result().Cookies()[0])
	}
	for _, c := range more {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestNobodyElseHasAPageTellSomething: what an action did was told by a parameter of the address, so that a link of anybody had the page
// say "The job is purged". It is told to the session that acted alone, by the page that the action led to, and once.
func TestNobodyElseHasAPageTellSomething(t *testing.T) {
	t.Parallel()
	h, said := page(&api{}), jobText.Actions["purge"].done
	require.NotContains(t, ask(t, h, "GET", "/ui/jobs?done=purge", "good", nil).Body.String(), said)

	w := ask(t, h, "POST", aJob+"/purge", "good", url.Values{"sure": {"1"}})
	require.Equal(t, "/ui/jobs", w.Header().Get("Location"))
	kept := w.Result().Cookies()
	require.Len(t, kept, 1)
	require.True(t, kept[0].HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, kept[0].SameSite)

	told := open(t, h, "/ui/jobs", "good", kept)
	require.Contains(t, told.Body.String(), said)
	require.Negative(t, told.Result().Cookies()[0].MaxAge, "it is told once")
	require.NotContains(t, open(t, h, aJob, "good", kept).Body.String(), said, "another page")
	require.NotContains(t, open(t, h, "/ui/jobs", "other", kept).Body.String(), said, "another session")
	forged := *kept[0]
	forged.Value = "start" + forged.Value[len("purge"):]
	require.NotContains(t, open(t, h, "/ui/jobs", "good", []*http.Cookie{&forged}).Body.String(), jobText.Actions["start"].done)
}
