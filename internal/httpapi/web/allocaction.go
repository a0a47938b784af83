package web

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/policy"
)

// allocButtons are the forms of what can be done with an allocation that is not done yet.
func (f *Face) allocButtons(r *http.Request, a *drover.Allocation) html.Part {
	if a.Terminal() || !f.may(r, a.Namespace, policy.AllocLifecycle) {
		return html.Part{}
	}
	form := func(name string, fields ...html.Part) html.Part {
		return html.El("form", html.Class("row"), html.Attr("method", "post"), html.Action(allocPath(a.ID, name)),
			html.Group(fields...), html.El("button", html.Class(allocText.Actions[name].look(name)), html.Text(allocText.Actions[name].button)))
	}
	task := func(id string) html.Part {
		options := []html.Part{html.ID(id), html.Attr("name", "task"), html.El("option", html.Attr("value", ""), html.Text(allocText.AllTasks))}
		for _, name := range taskNames(a) {
			options = append(options, html.El("option", html.Attr("value", name), html.Flag("selected", name == r.PostForm.Get("task")),
				html.Text(name)))
		}
		return html.Group(html.El("label", html.Class("away"), html.Attr("for", id), html.Text(text.Task)), html.El("select", options...))
	}
	if a.ClientStatus != drover.AllocClientRunning {
		return html.El("div", html.Class("row actions"), form("stop"))
	}
	signal := html.Group(html.El("label", html.Class("away"), html.Attr("for", "signal"), html.Text(allocText.Signal)),
		html.El("input", html.ID("signal"), html.Attr("name", "signal"), html.Attr("required", ""),
			html.Attr("placeholder", allocText.SignalMore), html.Attr("value", r.PostForm.Get("signal")), html.Attr("autocomplete", "off"),
			html.Attr("autocapitalize", "characters"), html.Attr("spellcheck", "false")))
	return html.El("div", html.Class("row actions"), form("stop"), form("restart", task("restart-task")),
		form("signal", task("signal-task"), signal))
}

// allocAction does what a form of an allocation's page asks for, by the API. Each ends or disturbs what runs, so it is asked for once more,
// by a page that names it.
func (f *Face) allocAction(w http.ResponseWriter, r *http.Request) error {
	name, id := r.PathValue("action"), r.PathValue("allocation")
	words, known := allocText.Actions[name]
	if err := r.ParseForm(); err != nil {
		return drover.Errorf(drover.Invalid, "%s: %w", text.BadForm, err)
	}
	task := r.PostForm.Get("task")
	signal := strings.ToUpper(strings.TrimSpace(r.PostForm.Get("signal")))
	switch {
	case !known:
		return drover.Errorf(drover.NotFound, "%s: %q", jobText.NoAction, name)
	case name == "signal" && signal == "":
		return f.allocationPage(w, r, http.StatusBadRequest, drover.Errorf(drover.Invalid, "%s", allocText.NoSignal))
	case r.PostForm.Get("sure") == "":
		a, err := f.readAllocation(r)
		if err != nil {
			return f.show(w, r, id, html.Part{}, err)
		}
		what := cmp.Or(a.Name, id)
		for _, more := range []string{task, signal} {
			if more != "" {
				what += " › " + more
			}
		}
		body := confirmation(allocPath(id, name), allocPath(id), what, words, hidden("task", task), hidden("signal", signal))
		return f.write(w, r, http.StatusOK, view{title: words.button, body: body})
	}
	if err := f.doAllocation(r, id, name, task, signal); err != nil {
		return f.allocationPage(w, r, httpapi.Status(err), err)
	}
	tell(w, r, allocPath(id), name)
	return nil
}

// doAllocation asks the API for the action; task "" is all. Errors: those of the API.
func (f *Face) doAllocation(r *http.Request, id, name, task, signal string) error {
	path, body := apiPath("client", "allocation", id, name), map[string]string{"TaskName": task}
	switch name {
	case "stop":
		path, body = apiPath("allocation", id, "stop"), map[string]string{}
	case "signal":
		body = map[string]string{"Task": task, "Signal": signal}
	}
	return f.ask(r.Context(), r, http.MethodPost, path, body, nil)
}
