package web

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/policy"
)

// terminalModule is the script of pages with a terminal.
const terminalModule = "term.js"

// terminalForm opens a terminal. What wire says is how the script talks to what is at from: as to a task, or as to a runner. The line is
// what does the same on the command line.
func terminalForm(from html.URL, wire string, pick html.Part, line string) html.Part {
	form := html.El("form", html.ID("terminal"), html.Class("row actions"), html.Attr("hidden", ""), html.Attr("data-wire", wire),
		html.Attr("data-from", from.String()), html.Attr("data-opening", allocText.Opening),
		html.Attr("data-opened", allocText.Opened), html.Attr("data-ended", allocText.Exited), html.Attr("data-lost", allocText.Cut),
		pick,
		html.El("label", html.Class("away"), html.Attr("for", "command"), html.Text(text.Command)),
		html.El("input", html.ID("command"), html.Class("code program"), html.Attr("name", "command"), html.Attr("value", "/bin/sh"),
			html.Attr("required", ""), html.Attr("spellcheck", "false"), html.Attr("autocapitalize", "off"), html.Attr("autocomplete", "off")),
		html.El("output", html.ID("said"), html.Class("muted"), html.Attr("tabindex", "-1")),
		html.El("button", html.ID("open"), html.Class("primary"), html.Text(allocText.Open)))
	more := html.El("p", html.Class("muted"), html.Text(allocText.TerminalMore), html.Text(" "), html.El("span", html.Class("code"),
		html.Text(line)))
	return html.Group(form, more, html.El("div", html.ID("screen"), html.Attr("role", "region"), html.Attr("aria-label", allocText.Terminal)))
}

// terminal asks which program to run in which task; a script opens it, and loads the terminal only then.
func (f *Face) terminal(w http.ResponseWriter, r *http.Request) error {
	a, err := f.readAllocation(r)
	if err != nil {
		return f.show(w, r, a.ID, html.Part{}, err)
	}
	names, task := slices.DeleteFunc(taskNames(a), func(name string) bool { return !f.entersTask(r, a, name) }), r.URL.Query().Get("task")
	options := []html.Part{html.ID("task"), html.Attr("name", "task")}
	for _, name := range names {
		options = append(options, html.El("option", html.Attr("value", name), html.Flag("selected", name == task), html.Text(name)))
	}
	running := a.ClientStatus == drover.AllocClientRunning
	pick := html.Group(html.El("label", html.Class("away"), html.Attr("for", "task"), html.Text(text.Task)), html.El("select", options...))
	body := terminalForm(allocPath(a.ID, "terminal", "live"), "task", pick, "drover alloc exec -i -t -task TASK "+a.ID+" /bin/sh")
	v := view{title: a.Name + " · " + allocText.Terminal, module: terminalModule}
	switch {
	case len(names) == 0:
		body, v.module = failed(r, httpapi.ErrDenied), ""
	case !running:
		body, v.module = html.El("p", html.Class("muted"), html.Text(allocText.NotRunning)), ""
	}
	v.body = html.Group(f.allocHead(r, a), body)
	return f.write(w, r, http.StatusOK, v)
}

// entersTask reports whether the viewer may run programs in the task. One that sees its node's own files needs more.
func (f *Face) entersTask(r *http.Request, a *drover.Allocation, name string) bool {
	if a.Job != nil {
		if g := a.Job.Group(a.TaskGroup); g != nil && g.Task(name) != nil && g.Task(name).Driver == "raw_exec" {
			return f.may(r, a.Namespace, policy.AllocExec, policy.AllocNodeExec)
		}
	}
	return f.may(r, a.Namespace, policy.AllocExec)
}

// terminalLive is the API's websocket, with the viewer's token, which browsers cannot send themselves. The guard before all routes let in
// only pages of this origin; the API says by a close frame what the token may not.
func (f *Face) terminalLive(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	path := apiPath("client", "allocation", r.PathValue("allocation"), "exec") + "?" +
		url.Values{"task": {q.Get("task")}, "command": {q.Get("command")}, "tty": {"true"}}.Encode()
	return f.socket(w, r, path)
}

// socket answers with a websocket of the API, asked with the viewer's token. It counts as a page that is kept up to date. Errors: 429.
func (f *Face) socket(w http.ResponseWriter, r *http.Request, path string) error {
	leave, err := f.enter(r)
	if err != nil {
		return err
	}
	defer leave()
	asking, err := http.NewRequestWithContext(r.Context(), http.MethodGet, path, http.NoBody)
	if err != nil {
		return err
	}
	asking.Host, asking.RemoteAddr, asking.RequestURI, asking.TLS = r.Host, r.RemoteAddr, path, r.TLS
	for _, name := range []string{
		"Connection", "Upgrade", "Sec-WebSocket-Key", "Sec-WebSocket-Version", "Sec-WebSocket-Extensions", "Sec-WebSocket-Protocol",
	} {
		if values := r.Header.Values(name); values != nil {
			asking.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	if token := tokenOf(r); token != "" {
		asking.Header.Set("X-Drover-Token", token)
	}
	f.API.ServeHTTP(w, asking)
	return nil
}
