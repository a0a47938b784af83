package web

import (
	"encoding/base64"
	"net"
	"net/http"
	"strings"

	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/html"
)

// cookieName is the session's. Browsers send cookies to all ports of a host, so the port is in the name: two agents of one machine do not
// sign each other out.
func cookieName(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		return "drover"
	}
	return "drover-" + port
}

// tokenOf is the token that the viewer signed in with; "" of who did not. Only this page reads the cookie: the API does not, so that no
// page of others can act through it.
func tokenOf(r *http.Request) string {
	cookie, err := r.Cookie(cookieName(r))
	if err != nil {
		return ""
	}
	token, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil {
		return ""
	}
	return string(token)
}

// setCookie sets the session, which ends with the browser; "" ends it now. No script can read it, and no other site can have it sent.
func setCookie(w http.ResponseWriter, r *http.Request, token string) {
	c := &http.Cookie{
		Name: cookieName(r), Value: base64.RawURLEncoding.EncodeToString([]byte(token)),
		Path: "/ui", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	}
	if token == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// back is where a form's sender wants to be after it: a path of the page, else its beginning.
func back(r *http.Request) string {
	next := r.FormValue("next")
	if !strings.HasPrefix(next, "/ui/") || strings.ContainsAny(next, "\\\r\n") {
		return "/ui/"
	}
	return next
}

func (f *Face) loginPage(w http.ResponseWriter, r *http.Request) error {
	return f.write(w, r, http.StatusOK, view{title: text.SignIn, body: loginForm(r, "")})
}

// login takes a token that the API takes.
func (f *Face) login(w http.ResponseWriter, r *http.Request) error {
	token := strings.TrimSpace(r.FormValue("token"))
	asking := r.Clone(r.Context())
	asking.Header.Del("Cookie")
	asking.AddCookie(&http.Cookie{Name: cookieName(r), Value: base64.RawURLEncoding.EncodeToString([]byte(token))})
	err := f.ask(r.Context(), asking, http.MethodGet, "/v1/rights", nil, nil)
	if token == "" || err != nil {
		why, status := text.NoToken, http.StatusUnprocessableEntity
		if err != nil {
			why, status = httpapi.Message(err), httpapi.Status(err)
		}
		return f.write(w, r, status, view{title: text.SignIn, body: loginForm(r, why)})
	}
	setCookie(w, r, token)
	http.Redirect(w, r, back(r), http.StatusSeeOther)
	return nil
}

func (f *Face) logout(w http.ResponseWriter, r *http.Request) error {
	setCookie(w, r, "")
	http.Redirect(w, r, "/ui/login", http.StatusSeeOther)
	return nil
}

// theme remembers light or dark; anything else is the system's.
func (f *Face) theme(w http.ResponseWriter, r *http.Request) error {
	http.SetCookie(w, &http.Cookie{
		Name: themeCookie, Value: themeNamed(r.FormValue("theme")), Path: "/ui", MaxAge: 365 * 24 * 3600, HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
	http.Redirect(w, r, back(r), http.StatusSeeOther)
	return nil
}

const themeCookie = "drover-theme"

// themeOf is the viewer's: "light", "dark" or "" for the system's.
func themeOf(r *http.Request) string {
	c, err := r.Cookie(themeCookie)
	if err != nil {
		return ""
	}
	return themeNamed(c.Value)
}

func themeNamed(name string) string {
	if name == "light" || name == "dark" {
		return name
	}
	return ""
}

// loginForm asks for a token; why says why the last one was not taken.
func loginForm(r *http.Request, why string) html.Part {
	next := r.FormValue("next")
	return html.El("form", html.Class("narrow"), html.Attr("method", "post"), html.Action(html.Path("ui", "login")),
		html.El("h1", html.Text(text.SignIn)),
		html.El("p", html.Class("muted"), html.Text(text.SignInMore)),
		html.If(why != "", notice("bad", text.NotSignedIn, why)),
		html.El("label", html.Attr("for", "token"), html.Text(text.Token)),
		html.El("input", html.ID("token"), html.Attr("name", "token"), html.Attr("type", "password"), html.Attr("required", ""),
			html.Attr("autocomplete", "current-password"), html.Attr("spellcheck", "false")),
		html.El("input", html.Attr("type", "hidden"), html.Attr("name", "next"), html.Attr("value", next)),
		html.El("button", html.Class("primary"), html.Text(text.SignIn)),
	)
}
