package web

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/static"
)

// A live run is three requests of the playground's script: a claim, the websocket of the execution in the claimed runner, and, once the
// receipt came over that, what it says for people. The runner is thrown away when the websocket closes, which a viewer who leaves brings
// about, too; one who leaves before it opens leaves the runner to its idle time.

const (
	typedWall      = 10 * time.Minute // of a program that somebody types to
	terminalOutput = 64 << 20         // bytes; a terminal keeps the last lines only
	maxFacts       = 64 << 10         // bytes of a receipt
)

// playModes are how a program gets its input: all of it ahead, as somebody types it, or from a terminal.
var playModes = []string{"given", "typed", "terminal"}

// playRequest is the first message of a live run, to which the script adds the command, the input ahead and the size of the terminal.
func playRequest(mode string) string {
	q := execution.Request{Spec: execution.Spec{Limits: drover.Limits{Wall: playWall, OutputBytes: playOutput}}}
	if mode != "given" {
		q.Stdin, q.Limits.Wall = true, typedWall
	}
	if mode == "terminal" {
		q.TTY, q.Env, q.Limits.OutputBytes = true, map[string]string{"TERM": "xterm-256color"}, terminalOutput
	}
	b, err := json.Marshal(q)
	if err != nil {
		panic(err) // it is data
	}
	return string(b)
}

// reply answers a script.
func reply(w http.ResponseWriter, status int, body any) error {
	static.Protect(w.Header())
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	return json.NewEncoder(w).Encode(body)
}

// playClaim claims a runner for the program of the form and gives it the files.
func (f *Face) playClaim(w http.ResponseWriter, r *http.Request) error {
	var answer struct {
		Runner string `json:"runner,omitempty"`
		Error  string `json:"error,omitempty"`
	}
	p, err := programOf(r)
	if err == nil {
		answer.Runner, err = f.claimFor(r, p)
	}
	if err != nil {
		answer.Error = httpapi.Message(err)
		return reply(w, httpapi.Status(err), answer)
	}
	return reply(w, http.StatusOK, answer)
}

// claimFor returns the runner's id. Errors: Invalid; those of ask.
func (f *Face) claimFor(r *http.Request, p program) (string, error) {
	changes, err := p.changes()
	if err != nil {
		return "", err
	}
	var runner execution.Runner
	claim := execution.ClaimRequest{
		Environment: p.environment, Wait: playWait, IdleTimeout: 2 * playWall, Labels: map[string]string{"from": "playground"},
	}
	if err := f.ask(r.Context(), r, http.MethodPost, p.claims("/v1/runners"), claim, &runner); err != nil {
		return "", err
	}
	if len(changes) > 0 {
		if err := f.ask(r.Context(), r, http.MethodPost, apiPath("runner", runner.ID, "files"), changes, nil); err != nil {
			f.release(r, runner.ID)
			return "", err
		}
	}
	return runner.ID, nil
}

// release throws a runner away, also when the viewer has left. What cannot be thrown away ends by its idle time.
func (f *Face) release(r *http.Request, runnerID string) {
	ctx, cancel := f.Clock.WithTimeout(context.WithoutCancel(r.Context()), playWait)
	defer cancel()
	_ = f.ask(ctx, r, http.MethodDelete, apiPath("runner", runnerID), nil, nil)
}

// playLive is the API's websocket that starts an execution in a runner of playClaim.
func (f *Face) playLive(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("runner")
	defer f.release(r, id)
	return f.socket(w, r, apiPath("runner", id, "execute"))
}

// playFacts says what a receipt means. It asks nobody: who may execute has the receipt already.
func (f *Face) playFacts(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Receipt                   execution.Receipt
		Claimed, FirstByte, Ended float64 // milliseconds since the run was asked for; 0: none
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxFacts)).Decode(&in); err != nil {
		return drover.Errorf(drover.Invalid, "%s: %w", text.BadForm, err)
	}
	since := func(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
	return reply(w, http.StatusOK, receiptFacts(&in.Receipt, times{since(in.Claimed), since(in.FirstByte), since(in.Ended)}))
}

// lines are those of a form, which browsers end by CR and LF, as programs expect them.
func lines(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
