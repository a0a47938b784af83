package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/policy"
)

const (
	playModule = "play.js"
	playWall   = 30 * time.Second
	playOutput = 1 << 20 // bytes of each stream
	playWait   = 10 * time.Second
	maxFiles   = 20
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
		return program{}, drover.Errorf(drover.Invalid, "%s: %w", text.BadForm, err)
	}
	p := program{environment: r.PostForm.Get("environment"), command: r.PostForm.Get("command"), stdin: lines(r.PostForm.Get("stdin"))}
	names, texts := r.PostForm["name"], r.PostForm["text"]
	if len(names) != len(texts) || len(names) > maxFiles {
		return p, drover.Errorf(drover.Invalid, "files: want as many contents as names, and at most %d", maxFiles)
	}
	for i, name := range names {
		p.files = append(p.files, source{name, lines(texts[i])})
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
		Spec: execution.Spec{Limits: drover.Limits{Wall: playWall, OutputBytes: playOutput}},
	}
}

// outcome is what came of a run.
type outcome struct {
	stdout, stderr string
	facts          []fact
	failure        error
}

// fact is a row of a result.
type fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Tone  string `json:"tone,omitempty"`
}

func (f *Face) playPage(w http.ResponseWriter, r *http.Request) error {
	return f.play(w, r, http.StatusOK, firstProgram(), nil)
}

// playSubmit is the form without JavaScript: it adds a file, or runs the program and shows the end.
func (f *Face) playSubmit(w http.ResponseWriter, r *http.Request) error {
	p, err := programOf(r)
	if err != nil {
		return f.play(w, r, http.StatusBadRequest, p, &outcome{failure: err})
	}
	if r.PostForm.Has("add") {
		p.files = append(p.files, source{})
		return f.play(w, r, http.StatusOK, p, nil)
	}
	changes, err := p.changes()
	if err != nil {
		return f.play(w, r, http.StatusUnprocessableEntity, p, &outcome{failure: err})
	}
	var result execution.RunResult
	ask := execution.RunRequest{Environment: p.environment, Request: p.request(), Files: changes, Wait: playWait, MaxOutput: playOutput}
	out := &outcome{failure: f.ask(r.Context(), r, http.MethodPost, p.claims("/v1/run"), ask, &result)}
	if out.failure == nil {
		stdout, stderr, err := result.Output()
		out.stdout, out.stderr, out.failure = string(stdout), string(stderr), err
		out.facts = receiptFacts(&result.Receipt, times{result.Claimed, result.FirstByte, result.Ended})
	}
	return f.play(w, r, http.StatusOK, p, out)
}

// playEnvironment makes the environment that the demonstration of -dev makes, too.
func (f *Face) playEnvironment(w http.ResponseWriter, r *http.Request) error {
	env := execution.Environment{ID: "playground", Image: "host", PoolSize: 2, MemoryMB: 64, MemoryMaxMB: 256}
	if err := f.ask(r.Context(), r, http.MethodPut, apiPath("environment", env.ID), env, nil); err != nil {
		return f.play(w, r, http.StatusOK, firstProgram(), &outcome{failure: err})
	}
	http.Redirect(w, r, "/ui/play", http.StatusSeeOther)
	return nil
}

// play shows the playground. What the viewer may not see is said in its place.
func (f *Face) play(w http.ResponseWriter, r *http.Request, status int, p program, out *outcome) error {
	var environments []execution.Environment
	err := f.ask(r.Context(), r, http.MethodGet, environmentsPath, nil, &environments)
	head := html.Group(html.El("h1", html.Text(text.Playground)), html.El("p", html.Class("muted"), html.Text(text.PlayMore)))
	v := view{title: text.Playground, module: playModule}
	switch {
	case (err == nil && len(environments) == 0 || httpapi.Status(err) == http.StatusForbidden) && f.mayOnlyRun(r):
		v.body = html.Group(head, f.playForm(r, p, nil, out)) // it may not see which there are, but name one
	case err != nil:
		v.body = html.Group(head, failed(r, err))
	case len(environments) == 0:
		v.body = html.Group(head, f.noEnvironment(r, out))
	default:
		environments = slices.DeleteFunc(environments, func(e execution.Environment) bool {
			return !f.may(r, execution.NamespaceOf(e.Key()), policy.ClaimRunner, policy.Execute)
		})
		if len(environments) == 0 {
			v.body, v.module = html.Group(head, notice("warn", text.Forbidden, text.PlayForbidden), signInOther(r)), ""
			break
		}
		v.body = html.Group(head, f.playForm(r, p, environments, out))
	}
	return f.write(w, r, status, v)
}

func (f *Face) noEnvironment(r *http.Request, out *outcome) html.Part {
	problem := html.Part{}
	if out != nil && out.failure != nil {
		problem = failed(r, out.failure)
	}
	return html.Group(problem, html.El("form", html.Class("panel"), html.Attr("method", "post"),
		html.Action(html.Path("ui", "play", "environment")),
		html.El("h2", html.Text(text.NoEnvironment)), html.El("p", html.Text(text.NoEnvironmentMore)),
		html.If(f.may(r, drover.DefaultNamespace, policy.WriteEnvironment),
			html.El("button", html.Class("primary"), html.Text(text.MakeEnvironment)))))
}

// mayOnlyRun reports whether the viewer may claim runners and execute in them, but not read which environments there are.
func (f *Face) mayOnlyRun(r *http.Request) bool {
	return f.may(r, anywhere, policy.ClaimRunner, policy.Execute) && !f.may(r, anywhere, policy.ReadRunner)
}

// playEnvironments chooses one of those that the viewer may see; without any, it is named.
func playEnvironments(p program, environments []execution.Environment) html.Part {
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

// playInput is the input that is given ahead, and how the program gets more, which takes the script.
func playInput(p program) html.Part {
	options := []html.Part{html.ID("mode"), html.Attr("name", "mode")}
	for _, mode := range playModes {
		options = append(options, html.El("option", html.Attr("value", mode), html.Attr("data-request", playRequest(mode)),
			html.Text(text.PlayModes[mode])))
	}
	return html.El("div",
		html.El("label", html.Attr("for", "stdin"), html.Text(text.Stdin), hint(text.StdinMore)),
		area("stdin", "stdin", "3", p.stdin),
		html.El("div", html.ID("modes"), html.Attr("hidden", ""), html.El("label", html.Attr("for", "mode"), html.Text(text.PlayMode)),
			html.El("select", options...)))
}

// playTyping is where somebody types to a program that runs.
func playTyping() html.Part {
	return html.Group(html.El("div", html.ID("typing"), html.Attr("hidden", ""),
		html.El("label", html.Attr("for", "line"), html.Text(text.TypeLine), hint(text.TypeLineMore)),
		html.El("div", html.Class("row"),
			html.El("input", html.ID("line"), html.Class("code grow"), html.Attr("spellcheck", "false"), html.Attr("autocapitalize", "off"),
				html.Attr("autocomplete", "off")),
			html.El("button", html.ID("send"), html.Attr("type", "button"), html.Text(text.SendLine)),
			html.El("button", html.ID("eof"), html.Attr("type", "button"), html.Text(text.EndInput)))),
		html.El("div", html.ID("screen"), html.Attr("hidden", ""), html.Attr("role", "region"), html.Attr("aria-label", allocText.Terminal)))
}

func (f *Face) playForm(r *http.Request, p program, environments []execution.Environment, out *outcome) html.Part {
	panels := make([]html.Part, 0, len(p.files))
	writes := f.may(r, anywhere, policy.WriteFiles)
	for i, s := range p.files {
		if writes {
			panels = append(panels, filePanel(i, s))
		}
	}
	if !writes && p.command == firstProgram().command {
		p.command = text.FirstLine
	}
	inputs := html.El("div", html.Class("inputs"),
		html.El("div", html.Class("row"),
			html.El("div", html.El("label", html.Attr("for", "environment"), html.Text(text.Environment)), playEnvironments(p, environments)),
			html.El("div", html.Class("grow"),
				html.El("label", html.Attr("for", "command"), html.Text(text.Command), hint(text.CommandMore)),
				html.El("input", html.ID("command"), html.Class("code"), html.Attr("name", "command"), html.Attr("value", p.command),
					html.Attr("required", ""), html.Attr("spellcheck", "false"), html.Attr("autocapitalize", "off"), html.Attr("autocomplete", "off")))),
		html.El("div", html.ID("files"), html.Group(panels...)),
		playInput(p),
		html.El("div", html.Class("row"),
			button("primary", "run", text.Run), html.If(writes, button("", "add", text.AddFile)),
			html.El("button", html.Attr("type", "button"), html.ID("stop"), html.Attr("hidden", ""), html.Text(text.Stop)),
			html.El("button", html.Attr("type", "button"), html.ID("share"), html.Attr("hidden", ""), html.Attr("data-done", text.Shared),
				html.Attr("data-damaged", text.Damaged),
				html.Text(text.Share)),
			html.El("output", html.ID("said"), html.Class("muted"), html.Attr("data-remove", text.Remove),
				html.Attr("data-starting", text.Starting), html.Attr("data-runs", text.Runs), html.Attr("data-lost", allocText.Cut))),
	)
	return html.El("form", html.ID("play"), html.Class("split"), html.Attr("method", "post"), html.Action(html.Path("ui", "play")),
		inputs, results(r, out))
}

func hint(words string) html.Part {
	return html.El("span", html.Class("muted hint"), html.Text(words))
}

func button(class, name, words string) html.Part {
	return html.El("button", html.Class(class), html.ID(name), html.Attr("name", name), html.Attr("value", "1"), html.Text(words))
}

func area(id, name, rows, value string) html.Part {
	return html.El("textarea", html.ID(id), html.Class("code"), html.Attr("name", name), html.Attr("rows", rows), html.Attr("dir", "auto"),
		html.Attr("spellcheck", "false"), html.Attr("autocapitalize", "off"), html.Attr("autocomplete", "off"), html.Text(value))
}

func filePanel(i int, s source) html.Part {
	n := strconv.Itoa(i)
	return html.El("fieldset", html.Class("file"), html.El("legend", html.Text(text.File)),
		html.El("label", html.Attr("for", "name"+n), html.Text(text.FileName)),
		html.El("input", html.ID("name"+n), html.Class("code"), html.Attr("name", "name"), html.Attr("value", s.name),
			html.Attr("spellcheck", "false"), html.Attr("autocapitalize", "off"), html.Attr("autocomplete", "off")),
		html.El("label", html.Class("away"), html.Attr("for", "text"+n), html.Text(text.FileText)),
		area("text"+n, "text", "12", s.text))
}

// results show both streams apart, and the receipt; before the first run they are empty, for the script to fill.
func results(r *http.Request, out *outcome) html.Part {
	problem, rows := html.Part{}, []html.Part{}
	if out == nil {
		out = &outcome{}
	}
	if out.failure != nil {
		problem = failed(r, out.failure)
	}
	for _, each := range out.facts {
		rows = append(rows, html.El("div", html.El("dt", html.Text(each.Name)), html.El("dd", html.Class(each.Tone), html.Text(each.Value))))
	}
	stream := func(id, words, content string) html.Part {
		return html.El("div", html.El("h2", html.ID(id+"-name"), html.Text(words)),
			html.El("pre", html.ID(id), html.Attr("tabindex", "0"), html.Attr("role", "region"), html.Attr("aria-labelledby", id+"-name"),
				html.Attr("data-empty", text.NoOutput), html.Text(content)))
	}
	return html.El("div", html.ID("results"), html.Class("results"), html.Attr("tabindex", "-1"), html.Attr("role", "region"),
		html.Attr("aria-label", text.Result), html.El("div", html.ID("problem"), html.Attr("data-title", text.Failed), problem),
		playTyping(), stream("stdout", text.Stdout, out.stdout), stream("stderr", text.Stderr, out.stderr),
		html.El("div", html.El("h2", html.Text(text.Result)),
			html.El("dl", append([]html.Part{html.ID("facts"), html.Attr("aria-live", "polite")}, rows...)...)))
}

// times are since the run was asked for; 0 is none.
type times struct{ claimed, firstByte, ended time.Duration }

// receiptFacts are a receipt's for people.
func receiptFacts(r *execution.Receipt, t times) []fact {
	tone := "ok"
	if r.ExitCode != 0 || r.Cause != execution.CauseExited {
		tone = "bad"
	}
	cause := text.Causes[string(r.Cause)]
	if cause == "" {
		cause = string(r.Cause)
	}
	facts := []fact{
		{text.Exit, strconv.Itoa(r.ExitCode), tone},
		{text.Cause, cause, ""},
		{text.Wall, short(r.Wall), ""},
		{text.CPU, short(r.UserCPU + r.SystemCPU), ""},
		{text.Memory, size(r.PeakMemory), ""},
		{text.Written, size(r.StdoutBytes) + " + " + size(r.StderrBytes), ""},
		{text.Claimed, short(t.claimed), ""},
		{text.FirstByte, short(t.firstByte), ""},
		{text.Ended, short(t.ended), ""},
	}
	if r.Error != "" {
		facts = slices.Insert(facts, 2, fact{text.Reason, r.Error, "bad"})
	}
	if r.Truncated {
		facts = append(facts, fact{text.Written, text.Truncated, "warn"})
	}
	return facts
}
