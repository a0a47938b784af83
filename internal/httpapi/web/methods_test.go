package web

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/acl"
)

// provider answers logins as the API does: a code is good with the nonce and the redirect URI that the login began with.
type provider struct {
	began   acl.AuthURLRequest
	address string
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	made := func() { _ = json.NewEncoder(w).Encode(acl.Token{AccessorID: "a", SecretID: "made"}) }
	switch r.URL.Path {
	case "/v1/acl/auth-methods":
		_ = json.NewEncoder(w).Encode([]acl.AuthMethodStub{{Name: "sso", Type: acl.MethodOIDC}, {Name: "ci", Type: acl.MethodJWT}})
	case "/v1/acl/oidc/auth-url":
		_ = json.NewDecoder(r.Body).Decode(&p.began)
		_ = json.NewEncoder(w).Encode(acl.AuthURL{AuthURL: p.address})
	case "/v1/acl/oidc/complete-auth":
		var asked acl.CompleteAuthRequest
		_ = json.NewDecoder(r.Body).Decode(&asked)
		if asked.ClientNonce != p.began.ClientNonce || asked.RedirectURI != p.began.RedirectURI || asked.Code != "code" || asked.State != "st" {
			http.Error(w, "Permission denied <b>", http.StatusForbidden)
			return
		}
		made()
	case "/v1/acl/login":
		var asked acl.LoginRequest
		_ = json.NewDecoder(r.Body).Decode(&asked)
		if asked != (acl.LoginRequest{AuthMethodName: "ci", LoginToken: "jwt"}) {
			http.Error(w, "Permission denied <b>", http.StatusForbidden)
			return
		}
		made()
	default:
		_, _ = w.Write([]byte("{}"))
	}
}

func sessionOf(w *httptest.ResponseRecorder) string {
	for _, c := range w.Result().Cookies() {
		if c.Name == "drover-4646" && c.MaxAge >= 0 {
			return c.Value
		}
	}
	return ""
}

// TestSigningInAtAProvider: a browser is sent there, comes back with a code, and is signed in. One that began no login is not, so
// that nobody is signed in as somebody else by a link.
func TestSigningInAtAProvider(t *testing.T) {
	t.Parallel()
	p := &provider{address: "https://idp.example/auth?x=1"}
	h := of(p)
	body := ask(t, h, "GET", "/ui/login?next=%2Fui%2Fjobs", "", nil).Body.String()
	inert(t, body)
	require.Contains(t, body, `action="/ui/login/oidc"`)
	require.Contains(t, body, `<input type="hidden" name="next" value="/ui/jobs">`)

	w := ask(t, h, "POST", "/ui/login/oidc", "", url.Values{"method": {"sso"}, "next": {"/ui/jobs"}})
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "0; url=https://idp.example/auth?x=1", w.Header().Get("Refresh"))
	require.Equal(t, "http://localhost:4646/ui/settings/tokens", p.began.RedirectURI)
	cookies := w.Result().Cookies()
	require.Len(t, cookies, 1)
	require.True(t, cookies[0].HttpOnly)
	require.Equal(t, http.SameSiteLaxMode, cookies[0].SameSite)
	require.Equal(t, "/ui/settings/tokens", cookies[0].Path)

	back := open(t, h, "/ui/settings/tokens?code=code&state=st", "", cookies)
	require.Equal(t, http.StatusOK, back.Code)
	require.NotEmpty(t, sessionOf(back))
	require.Equal(t, "0; url=/ui/jobs", back.Header().Get("Refresh"))
	require.Equal(t, "made", tokenOf(&http.Request{Host: "localhost:4646", Header: http.Header{"Cookie": {"drover-4646=" + sessionOf(back)}}}))
	inert(t, back.Body.String())

	for name, c := range map[string]struct {
		query   string
		cookies []*http.Cookie
		holds   string
	}{
		"a browser that began no login": {"?code=code&state=st", nil, methodText.NotBegun},
		"a wrong code":                  {"?code=other&state=st", cookies, "Permission denied &lt;b&gt;"},
		"a refusal":                     {"?error=%3Cb%3E&error_description=no", cookies, "&lt;b&gt;: no"},
	} {
		w := open(t, h, "/ui/settings/tokens"+c.query, "", c.cookies)
		require.Equal(t, http.StatusForbidden, w.Code, name)
		require.Empty(t, sessionOf(w), name)
		require.Contains(t, w.Body.String(), c.holds, name)
		inert(t, w.Body.String())
	}
	require.Equal(t, "/ui/login", open(t, h, "/ui/settings/tokens", "", nil).Header().Get("Location"), "who was sent by nobody")

	for _, address := range []string{"", "javascript:alert(1)", "/elsewhere", "://"} {
		p.address = address
		w = ask(t, h, "POST", "/ui/login/oidc", "", url.Values{"method": {"sso"}})
		require.Equal(t, http.StatusBadRequest, w.Code, address)
		require.Empty(t, w.Header().Get("Refresh"))
	}
}

func TestSigningInWithASignedToken(t *testing.T) {
	t.Parallel()
	h := of(&provider{})
	w := ask(t, h, "POST", "/ui/login/jwt", "", url.Values{"method": {"ci"}, "token": {" jwt\n"}, "next": {"/ui/jobs"}})
	require.Equal(t, "/ui/jobs", w.Header().Get("Location"))
	require.NotEmpty(t, sessionOf(w))
	w = ask(t, h, "POST", "/ui/login/jwt", "", url.Values{"method": {"ci"}, "token": {"other"}})
	require.Equal(t, http.StatusForbidden, w.Code)
	require.Empty(t, sessionOf(w))
	require.Contains(t, w.Body.String(), "Permission denied &lt;b&gt;")
}

// TestTheCallbackIsThatOfTheBrowser: behind a proxy that speaks TLS the browser is sent back over TLS.
func TestTheCallbackIsThatOfTheBrowser(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), "POST", "http://drover.example/ui/login/oidc", strings.NewReader(""))
	require.Equal(t, "http://drover.example/ui/settings/tokens", callbackURL(r))
	r.Header.Set("Referer", "https://drover.example/ui/login")
	require.Equal(t, "https://drover.example/ui/settings/tokens", callbackURL(r))
	r.Header.Set("Referer", "https://other.example/")
	require.Equal(t, "http://drover.example/ui/settings/tokens", callbackURL(r))
}
