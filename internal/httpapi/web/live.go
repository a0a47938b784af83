package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/viewers"
)

// Bounds of what keeps pages up to date.
const (
	slowViewer = 10 * time.Second // a viewer that takes no line for so long is cut, and comes again
	mostTopics = 20
	beat       = 500 * time.Millisecond // between two signs of life
)

// enter counts a page that is kept up to date; leave is called at its end. Errors: a StatusError of 429 if there are too many.
func (f *Face) enter(r *http.Request) (leave func(), err error) {
	return f.viewers.Enter(r, tokenOf(r), liveText.TooManyViewers)
}

// live tells a page that something of its topics changed, a line of JSON each: it is the API's brief event stream, with the viewer's
// rights. A line comes at least twice a second, by which the page knows that it is connected. A page without topics hears nothing else.
func (f *Face) live(w http.ResponseWriter, r *http.Request) error {
	asked := r.URL.Query()
	if len(asked["topic"]) == 0 {
		// Nobody is asked whether the token is one, so that those who invent tokens count by their address.
		leave, err := f.idle.Enter(r, "", liveText.TooManyViewers)
		if err != nil {
			return err
		}
		defer leave()
		return viewers.Stream(w, f.Clock, "application/x-ndjson", slowViewer, func(send func([]byte) error) error {
			return f.beats(r.Context(), send)
		})
	}
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

// beats sends signs of life until the viewer leaves.
func (f *Face) beats(ctx context.Context, send func([]byte) error) error {
	timer := f.Clock.NewTimer(beat)
	defer timer.Stop()
	for {
		if err := send([]byte("{}\n")); err != nil {
			return err
		}
		select {
		case <-timer.C():
			timer.Reset(beat)
		case <-ctx.Done():
			return nil
		}
	}
}

// stream answers with what run sends as it comes. A viewer that takes nothing for patience is cut. What goes wrong after the beginning is
// told to nobody: the page asks again. Errors: those of run before it sent something, and 429 if too many pages are open.
func (f *Face) stream(
	w http.ResponseWriter, r *http.Request, contentType string, patience time.Duration, run func(send func([]byte) error) error,
) error {
	leave, err := f.enter(r)
	if err != nil {
		return err
	}
	defer leave()
	return viewers.Stream(w, f.Clock, contentType, patience, run)
}

// jobTopics are those of which a job's page shows something.
var jobTopics = []string{drover.TopicJob, drover.TopicAllocation, drover.TopicEvaluation, drover.TopicDeployment}

// liveMark says in the bar whether the page is up to date, or just connected. Without the script there is nothing to say, and what a form
// was answered with stays as it is.
func liveMark(r *http.Request, body html.Part) html.Part {
	words, still := liveText.Live, r.Method != http.MethodGet
	if still || !strings.Contains(body.String(), ` data-live="`) {
		words = liveText.Connected
	}
	return html.El("output", html.ID("live"), html.Class("live muted"), html.Attr("hidden", ""), html.If(still, html.Attr("data-still", "")),
		html.Attr("data-live-text", words), html.Attr("data-paused-text", liveText.Paused),
		html.Attr("data-slow-text", liveText.Slow), html.Attr("data-unsent-text", liveText.Unsent),
		html.Attr("data-lost-text", liveText.Lost), html.Attr("data-polls-text", liveText.Polls))
}
