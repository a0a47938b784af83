package web

import (
	"cmp"
	"net/http"
	"net/url"
	"time"

	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/lists"
	"github.com/drover-project/drover/internal/httpapi/web/play"
	"github.com/drover-project/drover/internal/policy"
)

// site is the face as its subpackages' pages use it.
type site struct{ f *Face }

// Ask implements herd.Site.
func (s site) Ask(r *http.Request, path string, out any) error {
	return s.f.ask(r.Context(), r, http.MethodGet, path, nil, out)
}

// Follow implements herd.Site.
func (s site) Follow(r *http.Request, path string, to func([]byte) error) error {
	return s.f.follow(r.Context(), r, path, to)
}

// Show implements herd.Site.
func (s site) Show(w http.ResponseWriter, r *http.Request, title string, body html.Part, err error) error {
	return s.f.show(w, r, title, body, err)
}

// Write implements herd.Site and nodeview.Site.
func (s site) Write(w http.ResponseWriter, r *http.Request, status int, title string, body html.Part, module string) error {
	return s.f.write(w, r, status, view{title: title, body: body, module: module})
}

// Socket implements herd.Site.
func (s site) Socket(w http.ResponseWriter, r *http.Request, path string) error {
	return s.f.socket(w, r, path)
}

// Download implements herd.Site.
func (s site) Download(w http.ResponseWriter, r *http.Request, path, name string) error {
	return s.f.download(w, r, path, name)
}

// Send implements herd.Site.
func (s site) Send(r *http.Request, method, path string, in, out any) error {
	return s.f.ask(r.Context(), r, method, path, in, out)
}

// May implements herd.Words.
func (s site) May(r *http.Request, namespace string, all ...policy.Capability) bool {
	return s.f.may(r, namespace, all...)
}

// Terminal implements herd.Words.
func (s site) Terminal(from html.URL, wire string, pick html.Part, line string) html.Part {
	return terminalForm(from, wire, pick, line)
}

// Tabs implements herd.Words.
func (s site) Tabs(r *http.Request, label string, names []string, to []html.URL) html.Part {
	list := make([]tab, 0, len(names))
	for i, name := range names {
		list = append(list, tab{name, to[i]})
	}
	return tabs(r, label, list)
}

// Stream implements herd.Site.
func (s site) Stream(
	w http.ResponseWriter, r *http.Request, contentType string, patience time.Duration, run func(send func([]byte) error) error,
) error {
	return s.f.stream(w, r, contentType, patience, run)
}

// nodeSite is the face as the pages of nodes use it.
type nodeSite struct{ site }

// Send implements nodeview.Site.
func (s nodeSite) Send(r *http.Request, method, path string, body any) error {
	return s.f.ask(r.Context(), r, method, path, body, nil)
}

// Pass implements nodeview.Site.
func (s nodeSite) Pass(w http.ResponseWriter, r *http.Request, path string) error {
	return s.f.pass(w, r, path)
}

// Rights implements nodeview.Site.
func (s nodeSite) Rights(r *http.Request) *acl.Levels { return s.f.rights(r, "") }

// Confirm implements herd.Words and nodeview.Shared.
func (s site) Confirm(at, back html.URL, what, question, button string, fields ...html.Part) html.Part {
	return confirmation(at, back, what, action{sure: question, button: button}, fields...)
}

// listSite is the face as the pages of lists use it.
type listSite struct{ site }

// Read implements lists.Site.
func (s listSite) Read(r *http.Request, path string, out any) (http.Header, error) {
	return s.f.read(r, path, out)
}

// Done implements lists.Site.
func (s listSite) Done(r *http.Request) html.Part { return done(r, jobText.Actions) }

// Plans implements lists.Site.
func (s listSite) Plans(r *http.Request) bool { return s.f.may(r, anywhere, plansJobs...) }

// Failed implements herd.Words.
func (s site) Failed(r *http.Request, err error) html.Part { return failed(r, err) }

// SignIn implements herd.Words.
func (s site) SignIn(r *http.Request) html.Part { return signInOther(r) }

// Receipt implements herd.Words.
func (s site) Receipt(r *execution.Receipt) html.Part {
	rows := []html.Part{factOf(liveText.Started, instant(r.StartedAt))}
	for _, one := range play.Facts(r, play.Times{}) {
		if one.Value != "–" {
			rows = append(rows, html.El("div", html.El("dt", html.Text(one.Name)), html.El("dd", html.Class(one.Tone), html.Text(one.Value))))
		}
	}
	return facts(rows...)
}

// Cause implements herd.Words.
func (s site) Cause(c execution.Cause) string { return cmp.Or(play.Text.Causes[string(c)], string(c)) }

// List implements admin.Site.
func (s site) List(r *http.Request, path string, query url.Values, out any) (next string, err error) {
	return s.f.listInto(r, path, query, out)
}

// Do implements admin.Site.
func (s site) Do(r *http.Request, method, path string, in, out any) error {
	return s.f.ask(r.Context(), r, method, path, in, out)
}

// Page implements admin.Site.
func (s site) Page(w http.ResponseWriter, r *http.Request, status int, title string, body html.Part) error {
	return s.f.write(w, r, status, view{title: title, body: body})
}

// Tell implements admin.Site.
func (s site) Tell(w http.ResponseWriter, r *http.Request, at html.URL, name string) {
	tell(w, r, at, name)
}

// Told implements admin.Site.
func (s site) Told(r *http.Request) string { return told(r) }

// Pager implements admin.Site.
func (s site) Pager(r *http.Request, at html.URL, next string) html.Part {
	if prefix := r.URL.Query().Get("prefix"); prefix != "" {
		at = at.With("prefix", prefix)
	}
	return lists.Pager(at, at.With("after", next), r.URL.Query().Get("after") != "", next != "")
}

// Levels implements admin.Site and find.Site.
func (s site) Levels(r *http.Request) *acl.Levels { return s.f.rights(r, "") }
