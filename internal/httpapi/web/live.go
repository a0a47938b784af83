package web

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/html"
)

// Bounds of what keeps pages up to date.
const (
	mostViewers = 1000             // pages that are kept up to date at a time
	mostPages   = 250              // of them by one token, or without one by one address, which may be a proxy of many
	slowViewer  = 10 * time.Second // a viewer that takes no line for so long is cut, and comes again
	mostTopics  = 20
)

// viewers counts the pages that are kept up to date.
type viewers struct {
	mu  sync.Mutex
	all int            // guarded by mu
	by  map[string]int // guarded by mu: of each token or address
}

// enter counts a page; leave is called at its end. Errors: a StatusError of 429 if there are too many.
func (v *viewers) enter(r *http.Request) (leave func(), err error) {
	key := tokenOf(r)
	if key == "" {
		key, _, _ = net.SplitHostPort(r.RemoteAddr)
		key = "address " + key
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.all >= mostViewers || v.by[key] >= mostPages {
		return nil, &httpapi.StatusError{Status: http.StatusTooManyRequests, Err: errors.New(liveText.TooManyViewers)}
	}
	if v.by == nil {
		v.by = map[string]int{}
	}
	v.all++
	v.by[key]++
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.all--
		if v.by[key]--; v.by[key] == 0 {
			delete(v.by, key)
		}
	}, nil
}

// live tells a page that something of its topics changed, a line of JSON each: it is the API's brief event stream, with the viewer's
// rights. A line comes at least twice a second, by which the page knows that it is connected.
func (f *Face) live(w http.ResponseWriter, r *http.Request) error {
	asked := r.URL.Query()
	query := url.Values{"brief": {"true"}, "stale": {"true"}, "namespace": {"*"}, "topic": asked["topic"]}
	if index := asked.Get("index"); index != "" {
		query.Set("index", index)
	}
	if len(query["topic"]) > mostTopics {
		return &httpapi.StatusError{Status: http.StatusBadRequest, Err: errors.New("topic: there are too many")}
	}
	return f.stream(w, r, "application/x-ndjson", slowViewer, func(send func([]byte) error) error {
		return f.follow(r.Context(), r, "/v1/event/stream?"+query.Encode(), send)
	})
}

// stream answers with what run sends as it comes. A viewer that takes nothing for patience is cut. What goes wrong after the beginning is
// told to nobody: the page asks again. Errors: those of run before it sent something, and 429 if too many pages are open.
func (f *Face) stream(
	w http.ResponseWriter, r *http.Request, contentType string, patience time.Duration, run func(send func([]byte) error) error,
) error {
	leave, err := f.viewers.enter(r)
	if err != nil {
		return err
	}
	defer leave()
	control, begun := http.NewResponseController(w), false
	begin := func() {
		begun = true
		protect(w.Header())
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("X-Accel-Buffering", "no")
	}
	err = run(func(piece []byte) error {
		if !begun {
			begin()
		}
		_ = control.SetWriteDeadline(f.Clock.Now().Add(patience)) // not all writers of tests have deadlines
		if _, err := w.Write(piece); err != nil {
			return err
		}
		return control.Flush()
	})
	switch {
	case begun:
		return nil
	case err == nil: // there was nothing
		begin()
	}
	return err
}

// jobTopics are those of which a job's page shows something.
var jobTopics = []string{drover.TopicJob, drover.TopicAllocation, drover.TopicEvaluation, drover.TopicDeployment}

// liveMark says in the bar whether the page is up to date. Without the script there is nothing to say, and what a form was answered with
// stays as it is.
func liveMark(r *http.Request, body html.Part) html.Part {
	if r.Method != http.MethodGet || !strings.Contains(body.String(), ` data-live="`) {
		return html.Part{}
	}
	return html.El("output", html.ID("live"), html.Class("live muted"), html.Attr("hidden", ""),
		html.Attr("data-live-text", liveText.Live), html.Attr("data-paused-text", liveText.Paused),
		html.Attr("data-lost-text", liveText.Lost), html.Attr("data-polls-text", liveText.Polls))
}
