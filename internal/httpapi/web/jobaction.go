package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/html"
)

// jobKey is the job that a page's address names, as ID@NAMESPACE.
func jobKey(r *http.Request) drover.NamespacedID {
	id := r.PathValue("job")
	if i := strings.LastIndex(id, "@"); i > 0 {
		return drover.NamespacedID{Namespace: id[i+1:], ID: id[:i]}
	}
	return drover.NamespacedID{Namespace: drover.DefaultNamespace, ID: id}
}

// inNamespace is the address of the API with the namespace, and with more parameters by pairs.
func inNamespace(path, namespace string, pairs ...string) string {
	q := url.Values{"namespace": {namespace}}
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return path + "?" + q.Encode()
}

// jobAction does what a form of a job's page asks for, by the API. What ends something is asked for once more, by a page that names it. The
// viewer is led back to the job; an error stands on the job's page, with what was typed.
func (f *Face) jobAction(w http.ResponseWriter, r *http.Request) error {
	key, name := jobKey(r), r.PathValue("action")
	words, known := jobText.Actions[name]
	if err := r.ParseForm(); err != nil {
		return drover.Errorf(drover.Invalid, "%s: %w", text.BadForm, err)
	}
	switch {
	case !known:
		return drover.Errorf(drover.NotFound, "%s: %q", jobText.NoAction, name)
	case words.sure != "" && r.PostForm.Get("sure") == "":
		return f.write(w, r, http.StatusOK, view{title: words.button, body: confirmJob(r, key, name, words)})
	}
	if err := f.doJob(r, key, name); err != nil {
		return f.jobPage(w, r, httpapi.Status(err), err)
	}
	at := jobPath(key.ID, key.Namespace)
	if name == "purge" {
		at = html.Path("ui", "jobs")
	}
	tell(w, r, at, name)
	return nil
}

// confirmation asks whether to do what was asked for, and names what it ends; the fields are all that the form held.
func confirmation(at, back html.URL, what string, words action, fields ...html.Part) html.Part {
	before, after, _ := strings.Cut(words.sure, "%s")
	return html.El("form", html.Class("panel"), html.Attr("method", "post"), html.Action(at),
		html.El("h1", html.Text(jobText.Sure)),
		html.El("p", html.Text(before), html.El("strong", html.Name(what)), html.Text(after)),
		hidden("sure", "1"), html.Group(fields...),
		html.El("div", html.Class("row"), html.El("button", html.Class("primary"), html.Text(words.button)),
			html.El("a", html.Href(back), html.Text(jobText.Cancel))))
}

// confirmJob is confirmation of an action on a job.
func confirmJob(r *http.Request, key drover.NamespacedID, name string, words action) html.Part {
	var fields []html.Part
	for _, field := range []string{"version", "deployment"} {
		if v := r.PostForm.Get(field); v != "" {
			fields = append(fields, hidden(field, v))
		}
	}
	return confirmation(html.Path("ui", "jobs", key.ID+"@"+key.Namespace, name), jobPath(key.ID, key.Namespace),
		cmp.Or(r.PostForm.Get("version"), r.PostForm.Get("deployment"), key.ID), words, fields...)
}

// done says what the action did that led to the page; nothing if none did.
func done(r *http.Request, actions map[string]action) html.Part {
	words, known := actions[told(r)]
	if !known {
		return html.Part{}
	}
	return html.El("p", html.Class("notice ok"), html.Attr("role", "status"), html.Text(words.done))
}

// doJob asks the API for the action. Errors: Invalid for a field that cannot be read; those of the API.
func (f *Face) doJob(r *http.Request, key drover.NamespacedID, name string) error {
	send := func(method string, body any, path ...string) error { //nolint:contextcheck // it is the request's
		return f.ask(r.Context(), r, method, inNamespace(apiPath(path...), key.Namespace), body, nil)
	}
	none := map[string]any{}
	deployment := r.PostForm.Get("deployment")
	switch name {
	case "stop":
		return send(http.MethodDelete, nil, "job", key.ID)
	case "purge":
		return f.ask(r.Context(), r, http.MethodDelete, inNamespace(apiPath("job", key.ID), key.Namespace, "purge", "true"), nil, nil)
	case "start":
		return f.startJob(r, key)
	case "evaluate":
		return send(http.MethodPost, none, "job", key.ID, "evaluate")
	case "force":
		return send(http.MethodPost, none, "job", key.ID, "periodic", "force")
	case "scale":
		count, err := number("count", r.PostForm.Get("count"))
		if err != nil {
			return err
		}
		return send(http.MethodPost, map[string]any{"Count": count, "Target": map[string]string{"Group": r.PostForm.Get("group")}},
			"job", key.ID, "scale")
	case "dispatch":
		meta, err := metaOf(lines(r.PostForm.Get("meta")))
		if err != nil {
			return err
		}
		return send(http.MethodPost, map[string]any{"Payload": []byte(lines(r.PostForm.Get("payload"))), "Meta": meta}, "job", key.ID, "dispatch")
	case "revert":
		version, err := number("version", r.PostForm.Get("version"))
		if err != nil {
			return err
		}
		return send(http.MethodPost, map[string]any{"JobID": key.ID, "JobVersion": version}, "job", key.ID, "revert")
	case "promote":
		return send(http.MethodPost, map[string]any{"All": true}, "deployment", "promote", deployment)
	case "pause", "resume":
		return send(http.MethodPost, map[string]any{"Pause": name == "pause"}, "deployment", "pause", deployment)
	case "fail":
		return send(http.MethodPost, none, "deployment", "fail", deployment)
	}
	return drover.Errorf(drover.NotFound, "%s: %q", jobText.NoAction, name)
}

// number reads a whole number of a field. Errors: Invalid, which names the field.
func number(field, typed string) (uint64, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(typed), 10, 31)
	if err != nil {
		return 0, drover.Errorf(drover.Invalid, "%s: %q is not a whole number from 0 on", field, typed)
	}
	return n, nil
}

// metaOf reads lines of NAME=VALUE. Errors: Invalid, which names the line.
func metaOf(typed string) (map[string]string, error) {
	meta := map[string]string{}
	for i, line := range slices.Collect(strings.Lines(typed)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, drover.Errorf(drover.Invalid, "%s", fmt.Sprintf(jobText.MetaLine, i+1, line))
		}
		meta[name] = value
	}
	return meta, nil
}

// startJob registers a stopped job again, as it stands, unless it changed in between. Its fields are those of the API's answer: none that
// this page does not know is lost. Nor is the text that it was made of, where that is kept.
func (f *Face) startJob(r *http.Request, key drover.NamespacedID) error {
	var fields map[string]json.RawMessage
	if err := f.ask(r.Context(), r, http.MethodGet, inNamespace(apiPath("job", key.ID), key.Namespace), nil, &fields); err != nil {
		return err
	}
	body := map[string]any{"Job": fields, "EnforceIndex": true, "JobModifyIndex": fields["JobModifyIndex"]}
	source, err := f.source(r, key, string(fields["Version"]))
	switch {
	case err == nil:
		body["Submission"] = source
	case httpapi.Status(err) != http.StatusNotFound:
		return err
	}
	fields["Stop"] = json.RawMessage("false")
	return f.ask(r.Context(), r, http.MethodPost, inNamespace("/v1/jobs", key.Namespace), body, nil)
}

// source is the text of a version. Errors: those of ask.
func (f *Face) source(r *http.Request, key drover.NamespacedID, version string) (*drover.JobSubmission, error) {
	var s drover.JobSubmission
	err := f.ask(r.Context(), r, http.MethodGet, inNamespace(apiPath("job", key.ID, "submission"), key.Namespace, "version", version), nil, &s)
	return &s, err
}
