package web

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/cookies"
	"github.com/drover-project/drover/internal/httpapi/web/html"
)

// callbackPath is where identity providers send browsers back to.
const callbackPath = cookies.CallbackPath

// callbackURL is callbackPath as the browser knows this agent: a proxy before it may speak TLS in its place.
func callbackURL(r *http.Request) string {
	from, err := url.Parse(r.Referer())
	if r.TLS != nil || err == nil && from.Host == r.Host && from.Scheme == "https" {
		return "https://" + r.Host + callbackPath
	}
	return "http://" + r.Host + callbackPath
}

// authMethods are the ways to sign in without a token; none where the API has none to tell.
func (f *Face) authMethods(r *http.Request) (all []acl.AuthMethodStub) {
	if f.ask(r.Context(), r, http.MethodGet, "/v1/acl/auth-methods", nil, &all) != nil {
		return nil
	}
	return all
}

// methodForms has a form for each way to sign in at an identity provider.
func (f *Face) methodForms(r *http.Request) html.Part {
	var forms []html.Part
	next := hidden("next", r.FormValue("next"))
	for _, m := range f.authMethods(r) {
		method := hidden("method", m.Name)
		switch m.Type {
		case acl.MethodOIDC:
			forms = append(forms, html.El("form", html.Attr("method", "post"), html.Action(html.Path("ui", "login", "oidc")), method, next,
				html.El("button", html.Text(methodText.With+" "), html.Name(m.Name))))
		case acl.MethodJWT:
			id := "jwt-" + m.Name // a name has letters, digits and dashes
			forms = append(forms, html.El("form", html.Class("narrow"), html.Attr("method", "post"), html.Action(html.Path("ui", "login", "jwt")),
				method, next, html.El("label", html.Attr("for", id), html.Text(methodText.Signed+" "), html.Name(m.Name)),
				html.El("input", html.ID(id), html.Attr("name", "token"), html.Attr("type", "password"), html.Attr("required", ""),
					html.Attr("autocomplete", "off")),
				html.El("button", html.Text(methodText.With+" "), html.Name(m.Name))))
		}
	}
	if len(forms) == 0 {
		return html.Part{}
	}
	return html.El("section", append([]html.Part{html.El("h2", html.Text(methodText.Other))}, forms...)...)
}

// loginJWT signs in with a signed token of an identity provider.
func (f *Face) loginJWT(w http.ResponseWriter, r *http.Request) error {
	var made acl.Token
	asked := acl.LoginRequest{AuthMethodName: r.FormValue("method"), LoginToken: acl.Secret(strings.TrimSpace(r.FormValue("token")))}
	if err := f.ask(r.Context(), r, http.MethodPost, "/v1/acl/login", asked, &made); err != nil {
		return f.write(w, r, httpapi.Status(err), view{title: text.SignIn, body: f.loginForm(r, httpapi.Message(err))})
	}
	cookies.SetToken(w, r, string(made.SecretID))
	http.Redirect(w, r, back(r), http.StatusSeeOther)
	return nil
}

// beginOIDC sends the browser to the identity provider. It is sent by the answer's head: of a form's redirects browsers allow only those
// that stay on this origin.
func (f *Face) beginOIDC(w http.ResponseWriter, r *http.Request) error {
	p := cookies.Pending{Method: r.FormValue("method"), Nonce: rand.Text(), Redirect: callbackURL(r), Next: back(r)}
	var said acl.AuthURL
	asked := acl.AuthURLRequest{AuthMethodName: p.Method, RedirectURI: p.Redirect, ClientNonce: p.Nonce}
	err := f.ask(r.Context(), r, http.MethodPost, "/v1/acl/oidc/auth-url", asked, &said)
	to, unread := url.Parse(said.AuthURL)
	switch {
	case err == nil && (unread != nil || to.Scheme != "https" && to.Scheme != "http" || to.Host == ""):
		err = drover.Errorf(drover.Invalid, "%s", methodText.BadAddress)
		fallthrough
	case err != nil:
		return f.write(w, r, httpapi.Status(err), view{title: text.SignIn, body: f.loginForm(r, httpapi.Message(err))})
	}
	cookies.SetPending(w, r, &p)
	w.Header().Set("Refresh", "0; url="+to.String())
	body := html.Group(html.El("h1", html.Text(text.SignIn)), html.El("p", html.Text(methodText.Leaving+" "), html.Name(to.Host)))
	return f.write(w, r, http.StatusOK, view{title: text.SignIn, body: body})
}

// endOIDC takes what the identity provider sent along, and signs in.
func (f *Face) endOIDC(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	p, begun := cookies.PendingOf(r)
	if !q.Has("state") && !q.Has("error") { // nobody sent the browser here
		http.Redirect(w, r, "/ui/login", http.StatusSeeOther)
		return nil
	}
	cookies.SetPending(w, r, nil)
	why, status := "", http.StatusForbidden
	var made acl.Token
	switch {
	case !begun:
		why = methodText.NotBegun
	case q.Has("error"):
		why = strings.TrimSpace(q.Get("error") + ": " + q.Get("error_description"))
	default:
		err := f.ask(r.Context(), r, http.MethodPost, "/v1/acl/oidc/complete-auth", acl.CompleteAuthRequest{
			AuthMethodName: p.Method, ClientNonce: p.Nonce, State: q.Get("state"), Code: acl.Secret(q.Get("code")), Iss: q.Get("iss"),
			RedirectURI: p.Redirect,
		}, &made)
		if err != nil {
			why, status = httpapi.Message(err), httpapi.Status(err)
		}
	}
	if why != "" {
		return f.write(w, r, status, view{title: text.SignIn, body: f.loginForm(r, why)})
	}
	cookies.SetToken(w, r, string(made.SecretID))
	// The session comes along with what this page asks for, and not with a redirect of another site's.
	w.Header().Set("Refresh", "0; url="+p.Next)
	body := html.Group(html.El("h1", html.Text(text.SignIn)), html.El("p", html.Text(methodText.SignedIn+" "),
		html.El("a", html.Href(html.Path("ui", "")), html.Text(methodText.GoOn))))
	return f.write(w, r, http.StatusOK, view{title: text.SignIn, body: body})
}

// methodText is the texts of signing in at an identity provider.
var methodText = struct{ Other, With, Signed, Leaving, BadAddress, NotBegun, SignedIn, GoOn string }{
	Other: "Without a token", With: "Sign in with", Signed: "Signed token (JWT) for", Leaving: "The browser goes to",
	BadAddress: "the auth method gave no address to go to: its provider's discovery URL may be wrong",
	NotBegun:   "This browser began no login here in the last ten minutes: begin again.",
	SignedIn:   "You are signed in.", GoOn: "Go on",
}
