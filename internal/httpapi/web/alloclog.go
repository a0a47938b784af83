package web

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/static"
)

const (
	latest  = 1 << 47          // of times of found lines: scripts show none from the year 275760 on
	logTail = 256 << 10        // bytes of a log that a viewer begins with
	logPage = 64 << 10         // bytes of a log that a page without JavaScript shows
	logSlow = 40 * time.Second // for a viewer to take a piece
)

// logOf is one stream of a task, as an address names it.
type logOf struct{ allocation, task, stream string }

// logAsked reads the address; a task that it does not name is "", and the stream stdout.
func logAsked(r *http.Request) logOf {
	l := logOf{r.PathValue("allocation"), r.URL.Query().Get("task"), "stdout"}
	if r.URL.Query().Get("type") == "stderr" {
		l.stream = "stderr"
	}
	return l
}

// api is where the API has the log, with more parameters by pairs.
func (l logOf) api(pairs ...string) string {
	q := url.Values{"task": {l.task}, "type": {l.stream}}
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return apiPath("client", "fs", "logs", l.allocation) + "?" + q.Encode()
}

// page is the log's page, or with more what is below it.
func (l logOf) page(more ...string) html.URL {
	return allocPath(l.allocation, append([]string{"logs"}, more...)...).With("task", l.task).With("type", l.stream)
}

// asks is what a live log asks the API for: what follows, or only the lines that have a text. It begins at a time, at a place
// or a little before the end.
func (l logOf) asks(r *http.Request) []string {
	q := r.URL.Query()
	search := q.Get("search")
	pairs := []string{"follow", "true"}
	if search != "" {
		pairs = []string{"search", search}
	}
	if since := q.Get("since"); since != "" {
		return append(pairs, "since", since)
	}
	if file, err := strconv.ParseUint(q.Get("file"), 10, 32); err == nil {
		return append(pairs, "file", "alloc/logs/"+l.task+"."+l.stream+"."+strconv.FormatUint(file, 10), "offset", q.Get("offset"))
	}
	if search == "" {
		pairs = append(pairs, "origin", "end", "offset", strconv.Itoa(logTail))
	}
	return pairs
}

// logs shows the end of a task's output, which a script follows where there is one. Without it, links lead to what is before.
func (f *Face) logs(w http.ResponseWriter, r *http.Request) error {
	a, err := f.readAllocation(r)
	if err != nil {
		return f.show(w, r, a.ID, html.Part{}, err)
	}
	l, names := logAsked(r), taskNames(a)
	if !slices.Contains(names, l.task) && len(names) > 0 {
		l.task = names[0]
	}
	back, _ := strconv.ParseInt(r.URL.Query().Get("back"), 10, 64) // else the end
	back = max(back, 0)
	since, search := r.URL.Query().Get("since"), r.URL.Query().Get("search")
	end, err := f.readLog(r, l, back, since, search)
	content, code := logView(l, back, since, search, end), http.StatusOK
	switch status := httpapi.Status(err); {
	case err == nil:
	case status == http.StatusNotFound: // nothing was written yet, or the folder is gone
		content = html.Group(html.El("p", html.Class("muted"), html.Name(httpapi.Message(err))), content)
	default:
		content, code = failed(r, err), status
	}
	v := view{title: a.Name + " · " + allocText.Logs, body: html.Group(f.allocHead(r, a), logPick(l, names), logSearch(l, search), content)}
	if back == 0 && code == http.StatusOK {
		v.module = "logs.js"
	}
	return f.write(w, r, code, v)
}

var errEnough = errors.New("enough was read")

// readLog reads a page of a log, which begins at a time or ends that many bytes before the log's end, or of its lines that have a text.
// Errors: those of ask.
func (f *Face) readLog(r *http.Request, l logOf, back int64, since, search string) (string, error) {
	var kept []byte
	path := l.api("plain", "true", "origin", "end", "offset", strconv.FormatInt(back+logPage, 10))
	switch {
	case search != "":
		path = l.api("plain", "true", "search", search)
	case since != "":
		path = l.api("plain", "true", "since", since)
	}
	err := f.follow(r.Context(), r, path, func(p []byte) error {
		kept = append(kept, p[:min(len(p), logPage-len(kept))]...)
		if len(kept) == logPage {
			return errEnough
		}
		return nil
	})
	if len(kept) == logPage { // whoever sent it was cut off, and may say so
		err = nil
	}
	return string(kept), err
}

// logPick chooses the task and the stream.
func logPick(l logOf, names []string) html.Part {
	pick := func(id, words string, all []string, is string) html.Part {
		options := []html.Part{html.ID(id), html.Attr("name", id)}
		for _, name := range all {
			options = append(options, html.El("option", html.Attr("value", name), html.Flag("selected", name == is), html.Text(name)))
		}
		return html.Group(html.El("label", html.Class("away"), html.Attr("for", id), html.Text(words)), html.El("select", options...))
	}
	return html.El("form", html.Class("row actions"), html.Action(allocPath(l.allocation, "logs")), pick("task", text.Task, names, l.task),
		pick("type", allocText.Stream, []string{"stdout", "stderr"}, l.stream), html.El("button", html.Text(allocText.Show)),
		html.El("a", html.Href(l.page("file")), html.Text(allocText.Download)))
}

// logSearch searches all of the log; with a script the lines that are found lead to their places.
func logSearch(l logOf, search string) html.Part {
	button := func(id, words string) html.Part {
		return html.El("button", html.ID(id), html.Attr("type", "button"), html.Attr("hidden", ""), html.Text(words))
	}
	form := html.El("form", html.ID("search-log"), html.Class("row actions"), html.Action(allocPath(l.allocation, "logs")),
		html.Attr("data-from", l.page("live").String()), html.Attr("data-searching", allocText.Searching),
		html.Attr("data-none", allocText.FoundNone),
		html.Attr("data-all", allocText.FoundAll), html.Attr("data-first", allocText.FoundFirst), html.Attr("data-stopped", allocText.FoundSoFar),
		html.Attr("data-lost", allocText.Lost), html.Attr("data-failed", text.Failed),
		hidden("task", l.task), hidden("type", l.stream),
		html.El("label", html.Class("away"), html.Attr("for", "search"), html.Text(allocText.SearchAll)),
		html.El("input", html.ID("search"), html.Attr("name", "search"), html.Attr("type", "search"), html.Attr("value", search),
			html.Attr("maxlength", "256"), html.Attr("placeholder", allocText.SearchAll), html.Attr("autocomplete", "off"),
			html.Attr("spellcheck", "false")),
		html.El("button", html.Text(allocText.Search)), button("search-stop", allocText.SearchStop), button("search-more", allocText.SearchMore),
		html.El("output", html.ID("searched"), html.Class("muted"), html.Attr("aria-live", "polite")))
	found := html.El("section", html.ID("found"), html.Attr("hidden", ""), html.Attr("aria-label", allocText.Found),
		html.El("ol", html.Class("hits"), html.Attr("tabindex", "0"), html.Attr("aria-label", allocText.Found)),
		html.El("button", html.ID("search-close"), html.Attr("type", "button"), html.Text(allocText.SearchClose)))
	return html.Group(form, found)
}

// logView is the text and the tools of the script, which shows them.
func logView(l logOf, back int64, since, search, content string) html.Part {
	to := func(n int64) html.URL { return l.page().With("back", strconv.FormatInt(n, 10)) }
	pages := html.El("p", html.ID("pages"),
		html.If(len(content) == logPage && since == "" && search == "", html.El("a", html.Href(to(back+logPage)), html.Text(allocText.Earlier))),
		html.Text(" "), html.If(back > 0, html.El("a", html.Href(to(max(0, back-logPage))), html.Text(allocText.Later))))
	tools := html.El("div", html.ID("log-tools"), html.Class("row actions"), html.Attr("hidden", ""),
		html.El("label", html.Class("away"), html.Attr("for", "filter"), html.Text(allocText.Filter)),
		html.El("input", html.ID("filter"), html.Attr("type", "search"), html.Attr("placeholder", allocText.Filter),
			html.Attr("autocomplete", "off"), html.Attr("spellcheck", "false")),
		html.El("button", html.ID("follow"), html.Attr("type", "button"), html.Attr("aria-pressed", "true"), html.Text(allocText.Follow)),
		html.El("button", html.ID("pause"), html.Attr("type", "button"), html.Attr("aria-pressed", "false"), html.Text(allocText.Pause)),
		html.El("label", html.Attr("for", "since"), html.Text(allocText.Since)),
		html.El("input", html.ID("since"), html.Attr("type", "datetime-local"), html.Attr("step", "1")),
		html.El("button", html.ID("go"), html.Attr("type", "button"), html.Text(allocText.Go)),
		html.El("output", html.ID("log-said"), html.Class("muted"), html.Attr("aria-live", "polite")))
	return html.Group(tools, pages,
		html.El("div", html.ID("log"), html.Attr("tabindex", "0"), html.Attr("role", "region"), html.Attr("aria-label", l.stream),
			html.Attr("data-from", l.page("live").String()), html.Attr("data-lines", allocText.Lines), html.Attr("data-lost", allocText.Lost),
			html.Attr("data-silent", allocText.Silent), html.Attr("data-ended", allocText.Ended), html.Attr("data-paused", allocText.Paused),
			html.Attr("data-gap", allocText.Gap), html.Attr("data-skipped", allocText.Skipped), html.Attr("data-past", allocText.Past),
			html.Attr("data-at", allocText.AtFound),
			html.Attr("data-since", since), html.Attr("data-failed", text.Failed),
			html.El("div", html.El("pre", html.Text(content)))))
}

// logFile sends all of a log that is kept, to be stored.
func (f *Face) logFile(w http.ResponseWriter, r *http.Request) error {
	l := logAsked(r)
	return f.download(w, r, l.api("plain", "true"), l.task+"."+l.stream+".log")
}

// download sends what the API answers as a file of a name. An error of the API before the first byte is a page.
func (f *Face) download(w http.ResponseWriter, r *http.Request, path, name string) error {
	begun, control := false, http.NewResponseController(w)
	begin := func() {
		begun = true
		static.Protect(w.Header())
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	}
	err := f.follow(r.Context(), r, path, func(p []byte) error {
		if !begun {
			begin()
		}
		_ = control.SetWriteDeadline(f.Clock.Now().Add(logSlow)) // what has none is not held up
		_, err := w.Write(p)
		return err
	})
	if err == nil && !begun { // it is empty
		begin()
	}
	return err
}

// The kinds of pieces of a live log. Each piece has a head: its kind, the length of its content, the number of the log's file and
// where in that the content begins. These are big-endian numbers of 4, 4, 4 and 8 bytes.
const (
	pieceData  = iota // without content: a sign of life
	pieceEnd          // nothing more will be written
	pieceError        // the content says what failed
	pieceFound        // a line that was searched for, behind eight bytes of its time in Unix milliseconds
)

// logLive sends the end of a log and what is added to it, until the task ends or the viewer leaves. Where a piece is from lets the viewer
// go on after a lost connection without a gap. What fails is a piece, too.
func (f *Face) logLive(w http.ResponseWriter, r *http.Request) error {
	static.Protect(w.Header())
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	ctx, stop := context.WithCancel(r.Context())
	from, to := io.Pipe()
	ended := make(chan struct{})
	l := logAsked(r)
	path := l.api(l.asks(r)...)
	go func() { // ends with the log, or when logLive returns
		defer close(ended)
		err := f.follow(ctx, r, path, func(p []byte) error { _, err := to.Write(p); return err })
		_ = to.CloseWithError(err) // it has no errors
	}()
	defer func() { stop(); _ = from.Close(); <-ended }() // of a pipe, which has no errors
	control := http.NewResponseController(w)
	send := func(kind uint32, file uint32, begins int64, content []byte) error {
		head := binary.BigEndian.AppendUint32(make([]byte, 0, 20+len(content)), kind)
		head = binary.BigEndian.AppendUint32(head, uint32(len(content)))
		head = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(head, file), uint64(begins))
		_ = control.SetWriteDeadline(f.Clock.Now().Add(logSlow)) // what has none is not held up
		if _, err := w.Write(append(head, content...)); err != nil {
			return err
		}
		return control.Flush()
	}
	for pieces := json.NewDecoder(from); ; {
		var p struct {
			Offset int64
			Data   []byte
			File   string
			Time   int64
		}
		switch err := pieces.Decode(&p); {
		case errors.Is(err, io.EOF):
			return send(pieceEnd, 0, 0, nil)
		case err != nil && r.Context().Err() != nil:
			return nil
		case err != nil:
			return send(pieceError, 0, 0, []byte(httpapi.Message(err)))
		}
		file, _ := strconv.ParseUint(p.File[strings.LastIndexByte(p.File, '.')+1:], 10, 32) // a log's name ends with its number
		kind, begins := uint32(pieceData), p.Offset-int64(len(p.Data))
		if len(p.Data) > 0 && r.URL.Query().Has("search") {
			kind, p.Data = pieceFound, append(binary.BigEndian.AppendUint64(nil, uint64(min(max(p.Time, 0), latest))), p.Data...)
		}
		if err := send(kind, uint32(file), begins, p.Data); err != nil {
			return nil // the viewer has left
		}
	}
}

// logLinks lead from a task to what it writes.
func logLinks(a *drover.Allocation, task string) html.Part {
	to := func(stream string) html.Part {
		return html.El("a", html.Href(logOf{a.ID, task, stream}.page()), html.Attr("aria-label", fmt.Sprintf("%s, %s", stream, task)),
			html.Text(stream))
	}
	return html.Group(to("stdout"), html.Text(" "), to("stderr"))
}
