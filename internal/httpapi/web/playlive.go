package web

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/runes"
)

// event is one line of a live run's answer.
type event struct {
	Type  string `json:"type"` // "stdout", "stderr", "facts" or "error"
	Text  string `json:"text,omitempty"`
	Facts []fact `json:"facts,omitempty"`
}

// playLive runs the program and writes what comes of it as it comes, one line of JSON each. The runner is thrown away at the end, which a
// viewer who leaves brings about, too.
func (f *Face) playLive(w http.ResponseWriter, r *http.Request) error {
	p, err := programOf(r)
	if err != nil {
		return err
	}
	changes, err := p.changes()
	protect(w.Header())
	w.Header().Set("Content-Type", "application/x-ndjson")
	l := &live{face: f, viewer: r, begun: f.Clock.Now(), w: w, control: http.NewResponseController(w)}
	if err == nil {
		err = l.run(r.Context(), p, changes)
	}
	if err != nil && r.Context().Err() == nil {
		return l.send(event{Type: "error", Text: httpapi.Message(err)})
	}
	return nil
}

// live is one run.
type live struct {
	// Constant.
	face   *Face
	viewer *http.Request
	begun  time.Time

	mu      sync.Mutex
	w       http.ResponseWriter      // guarded by mu
	control *http.ResponseController // guarded by mu
	times   times                    // guarded by mu
}

// send writes one event.
func (l *live) send(e event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.times.firstByte == 0 && (e.Type == "stdout" || e.Type == "stderr") {
		l.times.firstByte = l.since()
	}
	if _, err := l.w.Write(append(line, '\n')); err != nil {
		return err
	}
	return l.control.Flush()
}

func (l *live) since() time.Duration { return l.face.Clock.Now().Sub(l.begun) }

// run claims a runner, gives it the files, and starts the program.
func (l *live) run(ctx context.Context, p program, changes []execution.FileChange) error {
	f, r := l.face, l.viewer
	var runner execution.Runner
	claim := execution.ClaimRequest{
		Environment: p.environment, Wait: playWait, IdleTimeout: 2 * playWall, Labels: map[string]string{"from": "playground"},
	}
	if err := f.ask(ctx, r, http.MethodPost, p.claims("/v1/runners"), claim, &runner); err != nil {
		return err
	}
	defer l.release(ctx, runner.ID)
	l.mu.Lock()
	l.times.claimed = l.since()
	l.mu.Unlock()
	if len(changes) > 0 {
		if err := f.ask(ctx, r, http.MethodPost, apiPath("runner", runner.ID, "files"), changes, nil); err != nil {
			return err
		}
	}
	request := p.request()
	request.Detach = playWall // its readers come after it
	var x execution.Execution
	if err := f.ask(ctx, r, http.MethodPost, apiPath("runner", runner.ID, "executions"), request, &x); err != nil {
		return err
	}
	return l.watch(ctx, x.ID)
}

// release throws the runner away, also when the viewer has left. What cannot be thrown away ends by its idle time.
func (l *live) release(ctx context.Context, runnerID string) {
	ctx, cancel := l.face.Clock.WithTimeout(context.WithoutCancel(ctx), playWait)
	defer cancel()
	_ = l.face.ask(ctx, l.viewer, http.MethodDelete, apiPath("runner", runnerID), nil, nil)
}

// watch sends the output of both streams to their ends, then the receipt.
func (l *live) watch(ctx context.Context, id string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var readers sync.WaitGroup
	var problems [2]error
	for i, name := range [...]string{"stdout", "stderr"} {
		readers.Go(func() { // ends with the stream, or the viewer
			if problems[i] = l.stream(ctx, id, name); problems[i] != nil {
				stop()
			}
		})
	}
	readers.Wait()
	for _, err := range problems {
		if err != nil && !strings.Contains(err.Error(), context.Canceled.Error()) {
			return err
		}
	}
	var x execution.Execution
	if err := l.face.ask(ctx, l.viewer, http.MethodGet, apiPath("execution", id)+"?wait=5s", nil, &x); err != nil || x.Receipt == nil {
		return err
	}
	l.mu.Lock()
	l.times.ended = l.since()
	facts := receiptFacts(x.Receipt, l.times)
	l.mu.Unlock()
	return l.send(event{Type: "facts", Facts: facts})
}

// stream sends one stream as text. What a character was cut into stays back until it is whole.
func (l *live) stream(ctx context.Context, id, name string) error {
	var tail []byte
	err := l.face.follow(ctx, l.viewer, apiPath("execution", id, "output")+"?stream="+name, func(p []byte) error {
		whole, rest := runes.Split(tail, p)
		text := string(whole)
		tail = append([]byte(nil), rest...)
		if text == "" {
			return nil
		}
		return l.send(event{Type: name, Text: text})
	})
	if err == nil && len(tail) > 0 {
		err = l.send(event{Type: name, Text: string(tail)})
	}
	return err
}

// lines are those of a form, which browsers end by CR and LF, as programs expect them.
func lines(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
