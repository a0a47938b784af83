package web

import (
	"net/http"
	"strings"

	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/cookies"
	"github.com/drover-project/drover/internal/httpapi/web/html"
)

// back is where a form's sender wants to be after it: a path of the page, else its beginning.
func back(r *http.Request) string {
	next := r.FormValue("next")
	if !strings.HasPrefix(next, "/ui/") || strings.ContainsAny(next, "\\\r\n") {
		return "/ui/"
	}
	return next
}

func (f *Face) loginPage(w http.ResponseWriter, r *http.Request) error {
	return f.write(w, r, http.StatusOK, view{title: text.SignIn, body: f.loginForm(r, "")})
}

// login takes a token that the API takes.
func (f *Face) login(w http.ResponseWriter, r *http.Request) error {
	token := strings.TrimSpace(r.FormValue("token"))
	asking := r.Clone(r.Context())
	asking.Header.Del("Cookie")
	asking.AddCookie(cookies.OfToken(r, token))
	err := f.ask(r.Context(), asking, http.MethodGet, "/v1/rights", nil, nil)
	if token == "" || err != nil {
		why, status := text.NoToken, http.StatusUnprocessableEntity
		if err != nil {
			why, status = httpapi.Message(err), httpapi.Status(err)
		}
		return f.write(w, r, status, view{title: text.SignIn, body: f.loginForm(r, why)})
	}
	cookies.SetToken(w, r, token)
	http.Redirect(w, r, back(r), http.StatusSeeOther)
	return nil
}

func (f *Face) logout(w http.ResponseWriter, r *http.Request) error {
	cookies.SetToken(w, r, "")
	http.Redirect(w, r, "/ui/login", http.StatusSeeOther)
	return nil
}

// theme remembers light or dark; anything else is the system's.
func (f *Face) theme(w http.ResponseWriter, r *http.Request) error {
	cookies.SetTheme(w, r, r.FormValue("theme"))
	http.Redirect(w, r, back(r), http.StatusSeeOther)
	return nil
}

// loginForm asks for a token; why says why the last one was not taken.
func (f *Face) loginForm(r *http.Request, why string) html.Part {
	next := r.FormValue("next")
	return html.Group(html.El("form", html.Class("narrow"), html.Attr("method", "post"), html.Action(html.Path("ui", "login")),
		html.El("h1", html.Text(text.SignIn)),
		html.El("p", html.Class("muted"), html.Text(text.SignInMore)),
		html.If(why != "", notice("bad", text.NotSignedIn, why)),
		html.El("label", html.Attr("for", "token"), html.Text(text.Token)),
		html.El("input", html.ID("token"), html.Attr("name", "token"), html.Attr("type", "password"), html.Attr("required", ""),
			html.Attr("autocomplete", "current-password"), html.Attr("spellcheck", "false")),
		html.El("input", html.Attr("type", "hidden"), html.Attr("name", "next"), html.Attr("value", next)),
		html.El("button", html.Class("primary"), html.Text(text.SignIn)),
	), f.methodForms(r))
}
