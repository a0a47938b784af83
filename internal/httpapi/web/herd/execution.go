package herd

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
	"github.com/drover-project/drover/internal/policy"
)

// execution shows one: its command, what became of it, and what it wrote. A script shows the output live, by an observer, for whom the
// program does not wait; and replays that of one that ended.
func (h *Pages) execution(w http.ResponseWriter, r *http.Request) error {
	return h.executionPage(w, r, http.StatusOK, nil)
}

// executionPage shows an execution; with what an action on it failed for, the page has that, too.
func (h *Pages) executionPage(w http.ResponseWriter, r *http.Request, code int, failure error) error {
	id := r.PathValue("execution")
	var x execution.Execution
	if err := h.Ask(r, api("execution", id), &x); err != nil {
		return h.Show(w, r, id, html.Part{}, err)
	}
	every := 1
	if x.Receipt != nil {
		every = 0
	}
	about := []html.Part{
		h.executionForms(r, &x),
		parts.Facts(parts.Fact(execText.Status, h.executionState(&x)), parts.Fact(execText.Runner, parts.Link(html.Path("ui", "runners",
			x.RunnerID), x.RunnerID)),
			parts.Fact(execText.LimitWall, html.Text(parts.Short(x.Spec.Limits.Wall))),
			parts.Fact(execText.LimitMemory, html.Text(limitSize(x.Spec.Limits.MemoryMB)))),
		html.El("h2", html.ID("command-name"), html.Text(execText.Command)),
		html.El("pre", html.Class("command"), html.Attr("tabindex", "0"), html.Attr("role", "region"),
			html.Attr("aria-labelledby", "command-name"), html.Name(strings.Join(x.Spec.Argv, " "))),
	}
	if x.Receipt != nil {
		about = append(about, html.El("h2", html.Text(execText.Result)), html.El("p", html.Text(sentence(x.Receipt))), h.Receipt(x.Receipt))
	}
	body := html.Group(html.El("h1", html.Name(id)), told(r), h.problem(r, failure),
		parts.Live("execution", []string{drover.TopicExecution}, every, about...))
	if !h.May(r, execution.NamespaceOf(x.RunnerID), policy.Execute) {
		body = html.Group(body, html.El("p", html.Class("muted"), html.Text(execText.NoOutput)))
		return h.Write(w, r, code, id, body, "")
	}
	body = html.Group(body, player(&x), html.El("div", html.Class("split"), h.outputPanel(r, &x, "stdout"), h.outputPanel(r, &x, "stderr")))
	return h.Write(w, r, code, id, body, "execution.js")
}

// sentence says what became of an execution; nothing of causes that are not known here.
func sentence(r *execution.Receipt) string {
	return strings.NewReplacer("{code}", strconv.Itoa(r.ExitCode), "{signal}", strconv.Itoa(r.Signal), "{took}", parts.Short(r.Wall),
		"{memory}", parts.Size(r.PeakMemory), "{output}", parts.Size(r.StdoutBytes+r.StderrBytes),
		"{cpu}", parts.Short(r.UserCPU+r.SystemCPU)).Replace(execText.Sentences[r.Cause])
}

// player steers the replay of what an execution wrote, for the script.
func player(x *execution.Execution) html.Part {
	speeds := []html.Part{html.ID("speed")}
	for _, s := range []string{"1", "2", "4", "16"} {
		speeds = append(speeds, html.El("option", html.Attr("value", s), html.Text(s+"×")))
	}
	at := html.Path("ui", "executions", x.ID)
	to := func(name string) html.URL { return html.Path("ui", "executions", x.ID, name) }
	button := func(id, words string) html.Part {
		return html.El("button", html.Attr("type", "button"), html.ID(id), html.Text(words))
	}
	return html.El("div", html.ID("player"), html.Class("row actions"), html.Attr("hidden", ""), html.Attr("data-socket", to("live").String()),
		html.Attr("data-timeline", to("timeline").String()), html.Attr("data-at", at.String()),
		html.Attr("data-follows", execText.Follows), html.Attr("data-lost", execText.Lost), html.Attr("data-refused", execText.Refused),
		html.Attr("data-ended", execText.AllShown), html.Attr("data-partial", execText.Partial), html.Attr("data-play", execText.Play),
		html.Attr("data-pause", execText.Pause), html.Attr("data-missed", execText.Missed), html.Attr("data-before", execText.Before),
		html.El("span", html.ID("replay"), html.Class("row grow"), html.Attr("hidden", ""),
			button("play", execText.Play),
			html.El("label", html.Class("away"), html.Attr("for", "speed"), html.Text(execText.Speed)), html.El("select", speeds...),
			button("end", execText.AtOnce),
			html.El("label", html.Class("away"), html.Attr("for", "seek"), html.Text(execText.Seek)),
			html.El("input", html.ID("seek"), html.Class("grow seek"), html.Attr("type", "range"), html.Attr("min", "0"), html.Attr("max", "0"),
				html.Attr("value", "0"), html.Attr("step", "10")),
			html.El("span", html.ID("at"), html.Class("code")),
			html.El("a", html.Href(to("cast")), html.Text(execText.Cast))),
		html.El("output", html.ID("said"), html.Class("muted")))
}

// shownOutput bounds what the page has of each stream of an execution that ended, where there is no script; in bytes.
const shownOutput = 256 << 10

var errRead = errors.New("enough was read")

// outputPanel has a stream of an execution that ended; of one that runs it is empty, for the script to fill.
func (h *Pages) outputPanel(r *http.Request, x *execution.Execution, stream string) html.Part {
	title := map[string]string{"stdout": execText.Stdout, "stderr": execText.Stderr}[stream]
	pre := []html.Part{
		html.ID(stream), html.Class("whole output"), html.Attr("tabindex", "0"), html.Attr("role", "region"), html.Attr("aria-labelledby",
			stream+"-name"),
	}
	more := html.Part{}
	if x.Receipt != nil {
		content, cut, err := h.outputOf(r, x.ID, stream)
		switch {
		case err != nil:
			more = h.Failed(r, err)
		case cut:
			more = html.El("p", html.Class("muted"), html.Text(fmt.Sprintf(execText.Cut, parts.Size(shownOutput))))
		}
		pre = append(pre, html.Text(content))
	}
	raw := html.Path("ui", "executions", x.ID, "output").With("stream", stream)
	return html.El("div", html.El("h2", html.ID(stream+"-name"), html.Text(title)), html.El("p", html.Class("row"),
		html.El("a", html.Href(raw), html.Attr("aria-label", execText.Download+" "+title), html.Text(execText.Download)),
		html.El("span", html.ID(stream+"-note"), html.Class("muted"))), html.El("pre", pre...), html.El("div", html.ID(stream+"-more"), more))
}

// outputOf is the beginning of a stream of an execution that ended, and whether there is more.
func (h *Pages) outputOf(r *http.Request, id, stream string) (content string, cut bool, err error) {
	var kept []byte
	err = h.Follow(r, outputPath(id, stream), func(p []byte) error {
		kept = append(kept, p[:min(len(p), shownOutput-len(kept))]...)
		if len(kept) >= shownOutput {
			return errRead
		}
		return nil
	})
	if len(kept) >= shownOutput { // whatever was said of the cut
		return string(kept), true, nil
	}
	return string(kept), false, err
}

// outputPath is where the API has a stream for an observer.
func outputPath(id, stream string) string {
	return api("execution", id, "output") + "?" + url.Values{"stream": {stream}, "observe": {"true"}}.Encode()
}

// executionLive is the API's websocket for an observer of both streams.
func (h *Pages) executionLive(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	asked := url.Values{"observe": {"true"}, "mode": {"binary"}, "stdout": {q.Get("stdout")}, "stderr": {q.Get("stderr")}}
	return h.Socket(w, r, api("execution", r.PathValue("execution"), "attach")+"?"+asked.Encode())
}

// executionTimeline is what the API says of when output came.
func (h *Pages) executionTimeline(w http.ResponseWriter, r *http.Request) error {
	return h.Stream(w, r, "application/json", slowReader, func(send func([]byte) error) error {
		return h.Follow(r, api("execution", r.PathValue("execution"), "timeline"), send)
	})
}

// executionOutput sends what is kept of a stream, and what is added to it, to be stored.
func (h *Pages) executionOutput(w http.ResponseWriter, r *http.Request) error {
	id, stream := r.PathValue("execution"), r.URL.Query().Get("stream")
	if stream != "stderr" {
		stream = "stdout"
	}
	return h.Download(w, r, outputPath(id, stream), id+"."+stream+".txt")
}

// executionCast sends what is kept of both streams as an asciicast.
func (h *Pages) executionCast(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("execution")
	var x execution.Execution
	var times execution.Timeline
	err := h.Ask(r, api("execution", id), &x)
	if err == nil {
		err = h.Ask(r, api("execution", id, "timeline"), &times)
	}
	if err == nil && x.Receipt == nil {
		err = drover.Errorf(drover.Conflict, "%s", execText.CastLater)
	}
	var content [2][]byte
	for i, stream := range []string{"stdout", "stderr"} {
		if err == nil {
			err = h.Follow(r, outputPath(id, stream), func(p []byte) error { content[i] = append(content[i], p...); return nil })
		}
	}
	if err != nil {
		return h.Show(w, r, id, html.Part{}, err)
	}
	begins := func(written int64, kept []byte) int64 { return max(0, written-int64(len(kept))) }
	from := execution.Offsets{Stdout: begins(x.Receipt.StdoutBytes, content[0]), Stderr: begins(x.Receipt.StderrBytes, content[1])}
	w.Header().Set("Content-Disposition", `attachment; filename="execution.cast"`)
	return h.Stream(w, r, "application/x-asciicast", slowReader, func(send func([]byte) error) error {
		return execution.WriteCast(writer(send), &times, &x.Spec, times.Pieces(from, content[0], content[1]))
	})
}

// writer is what sends as an io.Writer.
type writer func([]byte) error

// Write implements io.Writer.
func (w writer) Write(p []byte) (int, error) { return len(p), w(p) }
