package web

import (
	"net/http"

	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/cookies"
	"github.com/drover-project/drover/internal/httpapi/web/find"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/play"
	"github.com/drover-project/drover/internal/httpapi/web/static"
)

// view is what a page shows inside of its frame.
type view struct {
	title  string
	body   html.Part
	module string // of JavaScript, by its name; "" if the page has none
}

// write answers with a view in its frame.
func (f *Face) write(w http.ResponseWriter, r *http.Request, status int, v view) error {
	f.Sources.Protect(w.Header(), v.module == terminalModule || v.module == play.Module)
	cookies.Forget(w, r)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, err := w.Write(html.Document(f.frame(r, v, f.rights(r, ""))))
	return err
}

func (f *Face) frame(r *http.Request, v view, levels *acl.Levels) html.Part {
	root := []html.Part{html.Attr("lang", "en")}
	if theme := cookies.Theme(r); theme != "" {
		root = append(root, html.Attr("data-theme", theme))
	}
	head := []html.Part{
		html.El("meta", html.Attr("charset", "utf-8")),
		html.El("meta", html.Attr("name", "viewport"), html.Attr("content", "width=device-width, initial-scale=1")),
		html.El("meta", html.Attr("name", "color-scheme"), html.Attr("content", "light dark")),
		html.El("title", html.Text(v.title+" · Drover")),
		html.El("link", html.Attr("rel", "stylesheet"), html.Href(static.Address("app.css"))),
		html.El("link", html.Attr("rel", "icon"), html.Attr("type", "image/svg+xml"), html.Href(static.Address("favicon.svg"))),
	}
	head = append(head, html.Module(static.Address("live.js")), html.Module(static.Address("keys.js")))
	if v.module != "" {
		head = append(head, html.Module(static.Address(v.module)))
	}
	return html.El("html", append(root,
		html.El("head", head...),
		html.El("body",
			html.Anchor("main", html.Class("skip"), html.Text(text.Skip)),
			bar(r, levels, f.Label, liveMark(r, v.body)),
			html.El("main", html.ID("main"), html.Attr("tabindex", "-1"), crumb(r, levels), v.body),
			find.Palette(), find.KeyList(),
		))...)
}

// tab is a part of what a page is about.
type tab struct {
	words string
	path  html.URL
}

// tabs leads to the parts of what a page is about.
func tabs(r *http.Request, label string, parts []tab) html.Part {
	items := make([]html.Part, 0, len(parts))
	for _, t := range parts {
		link := []html.Part{html.Href(t.path), html.Text(t.words)}
		if r.URL.EscapedPath() == t.path.String() {
			link = append(link, html.Attr("aria-current", "page"))
		}
		items = append(items, html.El("li", html.El("a", link...)))
	}
	return html.El("nav", html.Class("tabs"), html.Attr("aria-label", label), html.El("ul", items...))
}

// session offers to sign in, or out.
func session(r *http.Request) html.Part {
	if tokenOf(r) == "" {
		return html.El("a", html.Href(html.Path("ui", "login").With("next", r.URL.RequestURI())), html.Text(text.SignIn))
	}
	return html.El("form", html.Attr("method", "post"), html.Action(html.Path("ui", "logout")),
		html.El("button", html.Class("plain"), html.Text(text.SignOut)))
}

func themeForm(r *http.Request) html.Part {
	other, words := "dark", text.Dark
	if cookies.Theme(r) == "dark" {
		other, words = "light", text.Light
	}
	return html.El("form", html.Attr("method", "post"), html.Action(html.Path("ui", "theme")),
		html.El("input", html.Attr("type", "hidden"), html.Attr("name", "next"), html.Attr("value", r.URL.RequestURI())),
		html.El("button", html.Class("plain"), html.Attr("name", "theme"), html.Attr("value", other), html.Text(words)))
}

// failed says what went wrong, and what to do. Who is not signed in is told how to.
func failed(r *http.Request, err error) html.Part {
	status := httpapi.Status(err)
	if status != http.StatusUnauthorized && status != http.StatusForbidden {
		return notice("bad", text.Failed, httpapi.Message(err))
	}
	return html.Group(notice("warn", text.Forbidden, httpapi.Message(err)), signInOther(r))
}

// signInOther leads to where one signs in.
func signInOther(r *http.Request) html.Part {
	return html.El("p", html.El("a", html.Href(html.Path("ui", "login").With("next", r.URL.RequestURI())), html.Text(text.SignInOther)))
}
