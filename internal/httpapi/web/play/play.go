package play

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/asking"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
	"github.com/drover-project/drover/internal/policy"
)

const (
	wall      = 30 * time.Second
	maxOutput = 1 << 20 // bytes of each stream
	wait      = 10 * time.Second
	maxFiles  = 20
)

// program is what a form of the playground holds.
type program struct {
	environment, command, stdin string
	files                       []source
}

type source struct{ name, text string }

// firstProgram greets, so that the first press of Run shows something.
func firstProgram() program {
	return program{command: "sh main.sh", stdin: "world\n", files: []source{{"main.sh", `read name
echo "hello $name"
echo "I am process $$ of user $(id -u)" >&2
`}}}
}

// programOf reads the form. Errors: Invalid.
func programOf(r *http.Request) (program, error) {
	if err := r.ParseForm(); err != nil {
		return program{}, drover.Errorf(drover.Invalid, "%s: %w", parts.BadForm, err)
	}
	p := program{environment: r.PostForm.Get("environment"), command: r.PostForm.Get("command"), stdin: parts.Lines(r.PostForm.Get("stdin"))}
	names, texts := r.PostForm["name"], r.PostForm["text"]
	if len(names) != len(texts) || len(names) > maxFiles {
		return p, drover.Errorf(drover.Invalid, "files: want as many contents as names, and at most %d", maxFiles)
	}
	for i, name := range names {
		p.files = append(p.files, source{name, parts.Lines(texts[i])})
	}
	return p, nil
}

// changes are the files of the program; those without name and content are left out. Errors: Invalid.
func (p program) changes() ([]execution.FileChange, error) {
	var list []execution.FileChange
	for i, s := range p.files {
		switch {
		case s.name == "" && s.text == "":
		case s.name == "":
			return nil, drover.Errorf(drover.Invalid, "file %d: it has content, but no name", i+1)
		default:
			list = append(list, execution.FileChange{Path: s.name, Text: &s.text})
		}
	}
	return list, nil
}

// claims is a path that claims a runner of the program's environment, which the form names by its key.
func (p program) claims(path string) string {
	return path + "?" + url.Values{"namespace": {execution.NamespaceOf(p.environment)}}.Encode()
}

func (p program) request() execution.Request {
	return execution.Request{
		Command: p.command, Input: []byte(p.stdin),
		Spec: execution.Spec{Limits: drover.Limits{Wall: wall, OutputBytes: maxOutput}},
	}
}

// outcome is what came of a run.
type outcome struct {
	stdout, stderr string
	facts          []Fact
	failure        error
}

// Fact is a row of a result.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Tone  string `json:"tone,omitempty"`
}

func (h *Pages) page(w http.ResponseWriter, r *http.Request) error {
	return h.show(w, r, http.StatusOK, firstProgram(), nil)
}

// submit is the form without JavaScript: it adds a file, or runs the program and shows the end.
func (h *Pages) submit(w http.ResponseWriter, r *http.Request) error {
	p, err := programOf(r)
	if err != nil {
		return h.show(w, r, http.StatusBadRequest, p, &outcome{failure: err})
	}
	if r.PostForm.Has("add") {
		p.files = append(p.files, source{})
		return h.show(w, r, http.StatusOK, p, nil)
	}
	changes, err := p.changes()
	if err != nil {
		return h.show(w, r, http.StatusUnprocessableEntity, p, &outcome{failure: err})
	}
	var result execution.RunResult
	ask := execution.RunRequest{Environment: p.environment, Request: p.request(), Files: changes, Wait: wait, MaxOutput: maxOutput}
	out := &outcome{failure: h.Send(r, http.MethodPost, p.claims("/v1/run"), ask, &result)}
	if out.failure == nil {
		stdout, stderr, err := result.Output()
		out.stdout, out.stderr, out.failure = string(stdout), string(stderr), err
		out.facts = Facts(&result.Receipt, Times{result.Claimed, result.FirstByte, result.Ended})
	}
	return h.show(w, r, http.StatusOK, p, out)
}

// makeEnvironment makes the environment that the demonstration of -dev makes, too.
func (h *Pages) makeEnvironment(w http.ResponseWriter, r *http.Request) error {
	env := execution.Environment{ID: "playground", Image: "host", PoolSize: 2, MemoryMB: 64, MemoryMaxMB: 256}
	if err := h.Send(r, http.MethodPut, asking.Path("environment", env.ID), env, nil); err != nil {
		return h.show(w, r, http.StatusOK, firstProgram(), &outcome{failure: err})
	}
	http.Redirect(w, r, "/ui/play", http.StatusSeeOther)
	return nil
}

// show shows the playground. What the viewer may not see is said in its place.
func (h *Pages) show(w http.ResponseWriter, r *http.Request, status int, p program, out *outcome) error {
	var environments []execution.Environment
	err := h.Send(r, http.MethodGet, "/v1/environments?namespace=*", nil, &environments)
	head := html.Group(html.El("h1", html.Text(Text.Playground)), html.El("p", html.Class("muted"), html.Text(Text.PlayMore)))
	var body html.Part
	module := Module
	switch {
	case (err == nil && len(environments) == 0 || httpapi.Status(err) == http.StatusForbidden) && h.mayOnlyRun(r):
		body = html.Group(head, h.form(r, p, nil, out)) // it may not see which there are, but name one
	case err != nil:
		body = html.Group(head, h.Failed(r, err))
	case len(environments) == 0:
		body = html.Group(head, h.noEnvironment(r, out))
	default:
		environments = slices.DeleteFunc(environments, func(e execution.Environment) bool {
			return !h.May(r, execution.NamespaceOf(e.Key()), policy.ClaimRunner, policy.Execute)
		})
		if len(environments) == 0 {
			body, module = html.Group(head, parts.Notice("warn", parts.Forbidden, Text.PlayForbidden), h.SignIn(r)), ""
			break
		}
		body = html.Group(head, h.form(r, p, environments, out))
	}
	return h.Write(w, r, status, Text.Playground, body, module)
}

func (h *Pages) noEnvironment(r *http.Request, out *outcome) html.Part {
	problem := html.Part{}
	if out != nil && out.failure != nil {
		problem = h.Failed(r, out.failure)
	}
	return html.Group(problem, html.El("form", html.Class("panel"), html.Attr("method", "post"),
		html.Action(html.Path("ui", "play", "environment")),
		html.El("h2", html.Text(Text.NoEnvironment)), html.El("p", html.Text(Text.NoEnvironmentMore)),
		html.If(h.May(r, drover.DefaultNamespace, policy.WriteEnvironment),
			html.El("button", html.Class("primary"), html.Text(Text.MakeEnvironment)))))
}

// mayOnlyRun reports whether the viewer may claim runners and execute in them, but not read which environments there are.
func (h *Pages) mayOnlyRun(r *http.Request) bool {
	return h.May(r, anywhere, policy.ClaimRunner, policy.Execute) && !h.May(r, anywhere, policy.ReadRunner)
}

// choice chooses one of those that the viewer may see; without any, it is named.
func choice(p program, environments []execution.Environment) html.Part {
	id, name := html.ID("environment"), html.Attr("name", "environment")
	if len(environments) == 0 {
		return html.El("input", id, name, html.Class("code"), html.Attr("value", p.environment), html.Attr("required", ""),
			html.Attr("spellcheck", "false"), html.Attr("autocapitalize", "off"), html.Attr("autocomplete", "off"))
	}
	options := []html.Part{id, name}
	for _, e := range environments {
		key := e.Key()
		options = append(options, html.El("option", html.Attr("value", key), html.Flag("selected", key == p.environment), html.Text(key)))
	}
	return html.El("select", options...)
}

// input is the input that is given ahead, and how the program gets more, which takes the script.
func input(p program) html.Part {
	options := []html.Part{html.ID("mode"), html.Attr("name", "mode")}
	for _, mode := range modes {
		options = append(options, html.El("option", html.Attr("value", mode), html.Attr("data-request", firstMessage(mode)),
			html.Text(Text.PlayModes[mode])))
	}
	return html.El("div",
		html.El("label", html.Attr("for", "stdin"), html.Text(Text.Stdin), parts.Hint(Text.StdinMore)),
		parts.Area("stdin", "stdin", "3", p.stdin),
		html.El("div", html.ID("modes"), html.Attr("hidden", ""), html.El("label", html.Attr("for", "mode"), html.Text(Text.PlayMode)),
			html.El("select", options...)))
}

// typing is where somebody types to a program that runs.
func typing() html.Part {
	return html.Group(html.El("div", html.ID("typing"), html.Attr("hidden", ""),
		html.El("label", html.Attr("for", "line"), html.Text(Text.TypeLine), parts.Hint(Text.TypeLineMore)),
		html.El("div", html.Class("row"),
			html.El("input", html.ID("line"), html.Class("code grow"), html.Attr("spellcheck", "false"), html.Attr("autocapitalize", "off"),
				html.Attr("autocomplete", "off")),
			html.El("button", html.ID("send"), html.Attr("type", "button"), html.Text(Text.SendLine)),
			html.El("button", html.ID("eof"), html.Attr("type", "button"), html.Text(Text.EndInput)))),
		html.El("div", html.ID("screen"), html.Attr("hidden", ""), html.Attr("role", "region"), html.Attr("aria-label", parts.Terminal)))
}

func (h *Pages) form(r *http.Request, p program, environments []execution.Environment, out *outcome) html.Part {
	panels := make([]html.Part, 0, len(p.files))
	writes := h.May(r, anywhere, policy.WriteFiles)
	for i, s := range p.files {
		if writes {
			panels = append(panels, filePanel(i, s))
		}
	}
	if !writes && p.command == firstProgram().command {
		p.command = Text.FirstLine
	}
	inputs := html.El("div", html.Class("inputs"),
		html.El("div", html.Class("row"),
			html.El("div", html.El("label", html.Attr("for", "environment"), html.Text(Text.Environment)), choice(p, environments)),
			html.El("div", html.Class("grow"),
				html.El("label", html.Attr("for", "command"), html.Text(parts.Command), parts.Hint(Text.CommandMore)),
				html.El("input", html.ID("command"), html.Class("code"), html.Attr("name", "command"), html.Attr("value", p.command),
					html.Attr("required", ""), html.Attr("spellcheck", "false"), html.Attr("autocapitalize", "off"), html.Attr("autocomplete", "off")))),
		html.El("div", html.ID("files"), html.Group(panels...)),
		input(p),
		html.El("div", html.Class("row"),
			parts.Button("primary", "run", Text.Run), html.If(writes, parts.Button("", "add", Text.AddFile)),
			html.El("button", html.Attr("type", "button"), html.ID("stop"), html.Attr("hidden", ""), html.Text(Text.Stop)),
			html.El("button", html.Attr("type", "button"), html.ID("share"), html.Attr("hidden", ""), html.Attr("data-done", Text.Shared),
				html.Attr("data-damaged", Text.Damaged),
				html.Text(Text.Share)),
			html.El("output", html.ID("said"), html.Class("muted"), html.Attr("data-remove", Text.Remove),
				html.Attr("data-starting", Text.Starting), html.Attr("data-runs", Text.Runs), html.Attr("data-lost", parts.Cut))),
	)
	return html.El("form", html.ID("play"), html.Class("split"), html.Attr("method", "post"), html.Action(html.Path("ui", "play")),
		inputs, h.results(r, out))
}

func filePanel(i int, s source) html.Part {
	n := strconv.Itoa(i)
	return html.El("fieldset", html.Class("file"), html.El("legend", html.Text(Text.File)),
		html.El("label", html.Attr("for", "name"+n), html.Text(Text.FileName)),
		html.El("input", html.ID("name"+n), html.Class("code"), html.Attr("name", "name"), html.Attr("value", s.name),
			html.Attr("spellcheck", "false"), html.Attr("autocapitalize", "off"), html.Attr("autocomplete", "off")),
		html.El("label", html.Class("away"), html.Attr("for", "text"+n), html.Text(Text.FileText)),
		parts.Area("text"+n, "text", "12", s.text))
}

// results show both streams apart, and the receipt; before the first run they are empty, for the script to fill.
func (h *Pages) results(r *http.Request, out *outcome) html.Part {
	problem, rows := html.Part{}, []html.Part{}
	if out == nil {
		out = &outcome{}
	}
	if out.failure != nil {
		problem = h.Failed(r, out.failure)
	}
	for _, each := range out.facts {
		rows = append(rows, html.El("div", html.El("dt", html.Text(each.Name)), html.El("dd", html.Class(each.Tone), html.Text(each.Value))))
	}
	stream := func(id, words, content string) html.Part {
		return html.El("div", html.El("h2", html.ID(id+"-name"), html.Text(words)),
			html.El("pre", html.ID(id), html.Attr("tabindex", "0"), html.Attr("role", "region"), html.Attr("aria-labelledby", id+"-name"),
				html.Attr("data-empty", Text.NoOutput), html.Text(content)))
	}
	return html.El("div", html.ID("results"), html.Class("results"), html.Attr("tabindex", "-1"), html.Attr("role", "region"),
		html.Attr("aria-label", Text.Result), html.El("div", html.ID("problem"), html.Attr("data-title", parts.Failed), problem),
		typing(), stream("stdout", Text.Stdout, out.stdout), stream("stderr", Text.Stderr, out.stderr),
		html.El("div", html.El("h2", html.Text(Text.Result)),
			html.El("dl", append([]html.Part{html.ID("facts"), html.Attr("aria-live", "polite")}, rows...)...)))
}

// Times are since the run was asked for; 0 is none.
type Times struct{ Claimed, FirstByte, Ended time.Duration }

// Facts are a receipt's for people.
func Facts(r *execution.Receipt, t Times) []Fact {
	tone := "ok"
	if r.ExitCode != 0 || r.Cause != execution.CauseExited {
		tone = "bad"
	}
	cause := Text.Causes[string(r.Cause)]
	if cause == "" {
		cause = string(r.Cause)
	}
	facts := []Fact{
		{Text.Exit, strconv.Itoa(r.ExitCode), tone},
		{Text.Cause, cause, ""},
		{Text.Wall, parts.Short(r.Wall), ""},
		{Text.CPU, parts.Short(r.UserCPU + r.SystemCPU), ""},
		{Text.Memory, parts.Size(r.PeakMemory), ""},
		{Text.Written, parts.Size(r.StdoutBytes) + " + " + parts.Size(r.StderrBytes), ""},
		{Text.Claimed, parts.Short(t.Claimed), ""},
		{Text.FirstByte, parts.Short(t.FirstByte), ""},
		{Text.Ended, parts.Short(t.Ended), ""},
	}
	if r.Error != "" {
		facts = slices.Insert(facts, 2, Fact{Text.Reason, r.Error, "bad"})
	}
	if r.Truncated {
		facts = append(facts, Fact{Text.Written, Text.Truncated, "warn"})
	}
	return facts
}
