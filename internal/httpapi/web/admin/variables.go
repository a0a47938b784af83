package admin

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
	"github.com/drover-project/drover/secrets"
)

// variables lists the paths that the viewer may list. It has no values.
func (h *Pages) variables(w http.ResponseWriter, r *http.Request) error {
	var all []secrets.VariableMetadata
	next, err := h.List(r, api("vars"), everywhere(r), &all)
	rows := make([]html.Part, 0, len(all))
	for i := range all {
		v := &all[i]
		locked := html.Part{}
		if v.Lock != nil {
			locked = parts.Toned("warn", Text.Locked)
		}
		rows = append(rows, parts.Row(parts.Link(variablePath(v.Namespace, v.Path), v.Path), html.Name(v.Namespace), parts.Moment(v.ModifyTime),
			locked))
	}
	body := html.Group(h.done(r), html.El("p", html.El("a", html.Href(html.Path("ui", "variable", "edit")), html.Text(Text.NewVariable))),
		filters(r, "prefix", Text.BeginsWith, "namespace", Text.Namespace),
		parts.Table(Text.Variables, Text.VariableColumns, rows, Text.NoVariables),
		h.Pager(r, at(r, html.Path("ui", "variables"), "namespace"), next))
	return h.Show(w, r, Text.Variables, body, err)
}

// variablePath is a variable's page. Its path is a parameter, as it has slashes.
func variablePath(namespace, path string) html.URL {
	return html.Path("ui", "variable").With("namespace", namespace).With("path", path)
}

// variableAPI is where the API has it.
func variableAPI(namespace, path string, more ...string) string {
	q := url.Values{"namespace": {cmp.Or(namespace, drover.DefaultNamespace)}}
	for i := 0; i < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	return api(append([]string{"var"}, strings.Split(path, "/")...)...) + "?" + q.Encode()
}

// variable shows one. Its values are hidden until the viewer asks for them.
func (h *Pages) variable(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	namespace, path := cmp.Or(q.Get("namespace"), drover.DefaultNamespace), q.Get("path")
	var v secrets.Variable
	if err := h.Ask(r, variableAPI(namespace, path), &v); err != nil {
		return h.Show(w, r, path, html.Part{}, err)
	}
	shown := q.Get("values") == "shown"
	rows := make([]html.Part, 0, len(v.Items))
	for _, name := range slices.Sorted(maps.Keys(v.Items)) {
		value := html.El("span", html.Class("muted"), html.Text(Text.Hidden))
		if shown {
			value = html.El("pre", html.Class("whole"), html.Text(v.Items[name]))
		}
		rows = append(rows, parts.Row(html.Name(name), value))
	}
	of := html.Group(parts.Hidden("namespace", namespace), parts.Hidden("path", path))
	state, words := "shown", Text.ShowValues
	if shown {
		state, words = "", Text.HideValues
	}
	locked := html.Part{}
	if v.Lock != nil {
		locked = notice("warn", Text.Locked, Text.LockedMore)
	}
	body := html.Group(h.done(r), locked,
		parts.Facts(parts.Fact(Text.Namespace, html.Name(namespace)), parts.Fact(Text.Made, parts.Moment(v.CreateTime)),
			parts.Fact(Text.Changed, parts.Moment(v.ModifyTime)), parts.Fact(Text.Index, html.Text(fmt.Sprint(v.ModifyIndex)))),
		html.El("div", html.Class("row actions"),
			html.El("form", of, html.If(state != "", parts.Hidden("values", state)), html.El("button", html.Text(words))),
			html.El("form", html.Action(html.Path("ui", "variable", "edit")), of, html.El("button", html.Text(Text.Change))),
			html.El("form", html.Attr("method", "post"), html.Action(html.Path("ui", "variable", "delete")), of,
				parts.Hidden("index", strconv.FormatUint(v.ModifyIndex, 10)), html.El("button", html.Text(Text.Delete)))),
		parts.Table(path, Text.ItemColumns, rows, Text.NoItems))
	return h.Show(w, r, path, body, nil)
}

// typed is what the form of a variable holds.
type typed struct {
	namespace, path string
	names, values   []string
	index           string // that the viewer saw; "0" of what there was not
}

// typedOf reads the form. A browser ends lines as no program expects it.
func typedOf(r *http.Request) typed {
	t := typed{
		namespace: cmp.Or(strings.TrimSpace(r.PostForm.Get("namespace")), drover.DefaultNamespace),
		path:      strings.TrimSpace(r.PostForm.Get("path")), names: r.PostForm["name"], index: r.PostForm.Get("index"),
	}
	for _, v := range r.PostForm["value"] {
		t.values = append(t.values, strings.ReplaceAll(v, "\r\n", "\n"))
	}
	return t
}

// items are the named ones. Errors: Invalid.
func (t *typed) items() (map[string]string, error) {
	if len(t.names) != len(t.values) {
		return nil, drover.Errorf(drover.Invalid, "%s", Text.BadForm)
	}
	out := map[string]string{}
	for i, name := range t.names {
		name = strings.TrimSpace(name)
		switch _, twice := out[name]; {
		case name == "" && t.values[i] == "":
		case name == "":
			return nil, drover.Errorf(drover.Invalid, Text.NoItemName, i+1)
		case twice:
			return nil, drover.Errorf(drover.Invalid, Text.ItemTwice, name)
		default:
			out[name] = t.values[i]
		}
	}
	return out, nil
}

// variableForm is for a new variable, or to change that of the address. To change one is to ask for its values.
func (h *Pages) variableForm(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	t := typed{namespace: cmp.Or(q.Get("namespace"), drover.DefaultNamespace), path: q.Get("path"), index: "0"}
	if t.path != "" {
		var v secrets.Variable
		if err := h.Ask(r, variableAPI(t.namespace, t.path), &v); err != nil {
			return h.Show(w, r, t.path, html.Part{}, err)
		}
		t.index = strconv.FormatUint(v.ModifyIndex, 10)
		for _, name := range slices.Sorted(maps.Keys(v.Items)) {
			t.names, t.values = append(t.names, name), append(t.values, v.Items[name])
		}
	}
	return h.editVariable(w, r, http.StatusOK, t, html.Part{})
}

// editVariable answers with the form.
func (h *Pages) editVariable(w http.ResponseWriter, r *http.Request, status int, t typed, problem html.Part) error {
	names, values := append(slices.Clone(t.names), ""), append(slices.Clone(t.values), "") // one more, for something new
	var items []html.Part
	for i := range min(len(names), len(values)) {
		name, value := "name"+strconv.Itoa(i), "value"+strconv.Itoa(i)
		items = append(items, html.El("fieldset", html.Class("item"), html.El("legend", html.Text(fmt.Sprintf(Text.Item, i+1))),
			html.El("div", html.El("label", html.Attr("for", name), html.Text(Text.ItemName)),
				html.El("input", html.ID(name), html.Attr("name", "name"), html.Attr("value", names[i]), html.Attr("autocomplete", "off"),
					html.Attr("spellcheck", "false"))),
			html.El("div", html.El("label", html.Attr("for", value), html.Text(Text.ItemValue)),
				html.El("textarea", html.ID(value), html.Class("code"), html.Attr("name", "value"), html.Attr("rows", "2"),
					html.Attr("autocomplete", "off"), html.Attr("spellcheck", "false"), html.Text(values[i])))))
	}
	title, fixed := Text.NewVariable, html.Part{}
	if t.index != "0" {
		title, fixed = t.path, html.Flag("readonly", true)
	}
	body := html.Group(html.El("h1", html.Name(title)), problem,
		html.El("form", html.Class("inputs"), html.Attr("method", "post"), html.Action(html.Path("ui", "variable", "edit")),
			parts.Hidden("index", t.index),
			html.El("div", html.Class("row"), field("namespace", Text.Namespace, t.namespace, fixed),
				html.El("div", html.Class("grow"), field("path", Text.VariablePath, t.path, fixed, html.Flag("required", true)))),
			html.Group(items...), html.El("p", html.Class("muted"), html.Text(Text.ItemsMore)),
			html.El("div", html.Class("row"), html.El("button", html.Class("primary"), html.Text(Text.Save)),
				html.El("button", html.Attr("name", "add"), html.Attr("value", "1"), html.Text(Text.AddItem)),
				html.El("a", html.Href(html.Path("ui", "variables")), html.Text(Text.Cancel)))))
	return h.Page(w, r, status, title, body)
}

// writeVariable writes what was typed, unless somebody else wrote meanwhile: then it shows both, and what was typed stays.
func (h *Pages) writeVariable(w http.ResponseWriter, r *http.Request) error {
	if err := form(r); err != nil {
		return err
	}
	t := typedOf(r)
	if r.PostForm.Get("add") != "" {
		t.names, t.values = append(t.names, ""), append(t.values, "")
		return h.editVariable(w, r, http.StatusOK, t, html.Part{})
	}
	items, err := t.items()
	if err == nil && t.path == "" {
		err = drover.Errorf(drover.Invalid, "%s", Text.NoPath)
	}
	if err == nil {
		body := map[string]any{"Items": items}
		err = h.Do(r, http.MethodPut, variableAPI(t.namespace, t.path, "cas", cmp.Or(t.index, "0")), body, nil)
	}
	switch {
	case err == nil:
		h.Tell(w, r, variablePath(t.namespace, t.path), "variable")
		return nil
	case httpapi.Status(err) == http.StatusConflict:
		return h.conflict(w, r, t, items)
	}
	return h.editVariable(w, r, httpapi.Status(err), t, h.Failed(r, err))
}

// conflict shows what is there now beside what was typed. The form has what was typed, and the index of what is there: whoever saves it
// again knows what they write over.
func (h *Pages) conflict(w http.ResponseWriter, r *http.Request, t typed, items map[string]string) error {
	var now secrets.Variable
	err := h.Ask(r, variableAPI(t.namespace, t.path), &now)
	var gone *httpapi.StatusError
	switch {
	case err == nil && now.Lock != nil && strconv.FormatUint(now.ModifyIndex, 10) == t.index:
		return h.editVariable(w, r, http.StatusConflict, t, notice("warn", Text.Locked, Text.LockedMore))
	case err == nil:
		t.index = strconv.FormatUint(now.ModifyIndex, 10)
	case errors.As(err, &gone) && gone.Status == http.StatusNotFound:
		t.index = "0"
	default: // it may be written, but not read
		return h.editVariable(w, r, http.StatusConflict, t, html.Group(notice("warn", Text.Conflict, Text.ConflictUnread), h.Failed(r, err)))
	}
	all := maps.Clone(items)
	maps.Copy(all, now.Items)
	var rows []html.Part
	for _, name := range slices.Sorted(maps.Keys(all)) {
		theirs, is := now.Items[name]
		mine, wanted := items[name]
		if is != wanted || theirs != mine {
			rows = append(rows, parts.Row(html.Name(name), valueOf(theirs, is), valueOf(mine, wanted)))
		}
	}
	return h.editVariable(w, r, http.StatusConflict, t, html.Group(notice("warn", Text.Conflict, Text.ConflictMore),
		parts.Table(Text.Conflict, Text.ConflictColumns, rows, Text.NoConflict)))
}

func valueOf(value string, is bool) html.Part {
	if !is {
		return html.El("span", html.Class("muted"), html.Text(Text.Absent))
	}
	return html.El("pre", html.Class("whole"), html.Text(value))
}

// deleteVariable asks once, and deletes what the viewer saw.
func (h *Pages) deleteVariable(w http.ResponseWriter, r *http.Request) error {
	if err := form(r); err != nil {
		return err
	}
	t := typedOf(r)
	if r.PostForm.Get("sure") == "" {
		body := confirm(html.Path("ui", "variable", "delete"), variablePath(t.namespace, t.path), Text.DeleteVariable, t.path, Text.Delete,
			parts.Hidden("namespace", t.namespace), parts.Hidden("path", t.path), parts.Hidden("index", t.index))
		return h.Page(w, r, http.StatusOK, Text.Delete, body)
	}
	err := h.Do(r, http.MethodDelete, variableAPI(t.namespace, t.path, "cas", t.index), nil, nil)
	switch {
	case err == nil:
		h.Tell(w, r, html.Path("ui", "variables"), "variable-deleted")
		return nil
	case httpapi.Status(err) == http.StatusConflict:
		body := html.Group(html.El("h1", html.Name(t.path)), notice("warn", Text.Conflict, Text.DeleteConflict),
			html.El("p", parts.Link(variablePath(t.namespace, t.path), t.path)))
		return h.Page(w, r, http.StatusConflict, t.path, body)
	}
	return h.Show(w, r, t.path, html.Part{}, err)
}
