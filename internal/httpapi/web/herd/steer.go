package herd

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/cookies"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
	"github.com/drover-project/drover/internal/policy"
)

// steered is something on which something can be done: a kind of page, and an id.
type steered struct{ kind, id string }

func (s steered) path(more ...string) html.URL {
	return html.Path(append([]string{"ui", s.kind, s.id}, more...)...)
}

// form asks for an action.
func (s steered) form(name string, fields ...html.Part) html.Part {
	words, look := steerText.Actions[name], ""
	if words.sure != "" {
		look = "ends"
	}
	return html.El("form", html.Class("row"), html.Attr("method", "post"), html.Action(s.path(name)), html.Group(fields...),
		html.El("button", html.Class(look), html.Text(words.button)))
}

// field is one of a form; its label is read to who does not see where it stands.
func field(id, label, value string, more ...html.Part) html.Part {
	return html.Group(html.El("label", html.Attr("for", id), html.Text(label)),
		html.El("input", append([]html.Part{
			html.ID(id), html.Class("count"), html.Attr("name", id), html.Attr("value", value), html.Attr("required", ""),
			html.Attr("autocomplete", "off"), html.Attr("spellcheck", "false"),
		}, more...)...))
}

// told says what the action did that led to the page; nothing if none did.
func told(r *http.Request) html.Part {
	words, known := steerText.Actions[cookies.Told(r)]
	if !known {
		return html.Part{}
	}
	return html.El("p", html.Class("notice ok"), html.Attr("role", "status"), html.Text(words.done))
}

// problem is what an action failed for; nothing if it did not.
func (h *Pages) problem(r *http.Request, failure error) html.Part {
	if failure == nil {
		return html.Part{}
	}
	return h.Failed(r, failure)
}

// do does what a form asks for: send, once the viewer is sure where that is asked. The viewer is led to the page after; show answers with
// the page of what it is about, with what went wrong and what was typed.
func (h *Pages) do(
	w http.ResponseWriter, r *http.Request, s steered, after html.URL, send func(action string) error,
	show func(code int, failure error) error,
) error {
	name := r.PathValue("action")
	words, known := steerText.Actions[name]
	if err := r.ParseForm(); err != nil {
		return drover.Errorf(drover.Invalid, "%s: %w", steerText.BadForm, err)
	}
	if !known || words.of != s.kind {
		return drover.Errorf(drover.NotFound, "%s: %q", steerText.NoAction, name)
	}
	if words.sure != "" && r.PostForm.Get("sure") == "" {
		return h.Write(w, r, http.StatusOK, words.button, h.Confirm(s.path(name), s.path(), s.id, words.sure, words.button), "")
	}
	if err := send(name); err != nil {
		return show(httpapi.Status(err), err)
	}
	cookies.Tell(w, r, after, name)
	return nil
}

// poolForm asks for another size of an environment's pool; nothing where the viewer may not.
func (h *Pages) poolForm(r *http.Request, key string, size int) html.Part {
	if !h.May(r, execution.NamespaceOf(key), policy.WriteEnvironment) {
		return html.Part{}
	}
	value := strconv.Itoa(size)
	if typed, posted := r.PostForm["size"]; posted {
		value = typed[0]
	}
	form := html.El("div", html.Class("row actions"), steered{"environments", key}.form("size",
		field("size", steerText.Size, value, html.Attr("inputmode", "numeric")),
		html.El("input", html.Attr("type", "hidden"), html.Attr("name", "was"), html.Attr("value", strconv.Itoa(size)))))
	return parts.Live("resize", []string{drover.TopicEnvironment}, 0, form) // while somebody types it stays
}

// environmentAction changes the size of a pool.
func (h *Pages) environmentAction(w http.ResponseWriter, r *http.Request) error {
	key := r.PathValue("environment")
	of := steered{"environments", key}
	return h.do(w, r, of, of.path(), func(string) error {
		size, err := strconv.Atoi(strings.TrimSpace(r.PostForm.Get("size")))
		if err != nil || size < 0 {
			return drover.Errorf(drover.Invalid, "%s: %q", steerText.NoSize, r.PostForm.Get("size"))
		}
		asked := execution.PoolResize{Size: &size}
		if was, err := strconv.Atoi(r.PostForm.Get("was")); err == nil { // what the viewer saw
			asked.Was = &was
		}
		return h.Send(r, http.MethodPost, api("environment", key, "size"), asked, nil)
	}, func(code int, failure error) error { return h.environmentPage(w, r, code, failure) })
}

// runnerForms are what can be done with a runner; nothing where the viewer may not.
func (h *Pages) runnerForms(r *http.Request, one *execution.Runner) html.Part {
	if one.ID == "" || one.State == execution.RunnerDraining || one.State == execution.RunnerDestroyed ||
		!h.May(r, execution.NamespaceOf(one.ID), policy.ClaimRunner) {
		return html.Part{}
	}
	of, idle := steered{"runners", one.ID}, "0"
	if one.IdleTimeout > 0 {
		idle = parts.Short(one.IdleTimeout)
	}
	if typed, posted := r.PostForm["idle"]; posted {
		idle = typed[0]
	}
	return html.El("div", html.Class("row actions"), of.form("extend", field("idle", steerText.Idle, idle)), of.form("release"))
}

// runnerAction extends the idle time of a runner, or releases it.
func (h *Pages) runnerAction(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("runner")
	of := steered{"runners", id}
	after := of.path()
	if r.PathValue("action") == "release" {
		after = html.Path("ui", "runners")
	}
	return h.do(w, r, of, after, func(action string) error {
		if action == "release" {
			return h.Send(r, http.MethodDelete, api("runner", id), nil, nil)
		}
		idle, err := time.ParseDuration(strings.TrimSpace(r.PostForm.Get("idle")))
		if err != nil || idle < 0 {
			return drover.Errorf(drover.Invalid, "%s: %q", steerText.NoIdle, r.PostForm.Get("idle"))
		}
		return h.Send(r, http.MethodPatch, api("runner", id), map[string]time.Duration{"idleTimeout": idle}, nil)
	}, func(code int, failure error) error { return h.runnerPage(w, r, code, failure) })
}

// executionForms are what can be done with an execution that runs; nothing where the viewer may not.
func (h *Pages) executionForms(r *http.Request, x *execution.Execution) html.Part {
	if x.Receipt != nil || !h.May(r, execution.NamespaceOf(x.RunnerID), policy.Execute) {
		return html.Part{}
	}
	of := steered{"executions", x.ID}
	return html.El("div", html.Class("row actions"), of.form("interrupt"), of.form("kill"))
}

// executionAction sends an execution a signal, or kills it with all that it started.
func (h *Pages) executionAction(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("execution")
	of := steered{"executions", id}
	return h.do(w, r, of, of.path(), func(action string) error {
		if action == "kill" {
			return h.Send(r, http.MethodDelete, api("execution", id), nil, nil)
		}
		return h.Send(r, http.MethodPost, api("execution", id, "signal"), map[string]string{"signal": "SIGINT"}, nil)
	}, func(code int, failure error) error { return h.executionPage(w, r, code, failure) })
}
