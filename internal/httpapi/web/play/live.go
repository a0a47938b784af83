package play

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/asking"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
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

// modes are how a program gets its input: all of it ahead, as somebody types it, or from a terminal.
var modes = []string{"given", "typed", "terminal"}

// firstMessage is the first message of a live run, to which the script adds the command, the input ahead and the size of the terminal.
func firstMessage(mode string) string {
	q := execution.Request{Spec: execution.Spec{Limits: drover.Limits{Wall: wall, OutputBytes: maxOutput}}}
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

// claim claims a runner for the program of the form and gives it the files.
func (h *Pages) claim(w http.ResponseWriter, r *http.Request) error {
	var answer struct {
		Runner string `json:"runner,omitempty"`
		Error  string `json:"error,omitempty"`
	}
	p, err := programOf(r)
	if err == nil {
		answer.Runner, err = h.claimFor(r, p)
	}
	if err != nil {
		answer.Error = httpapi.Message(err)
		return reply(w, httpapi.Status(err), answer)
	}
	return reply(w, http.StatusOK, answer)
}

// claimFor returns the runner's id. Errors: Invalid; those of ask.
func (h *Pages) claimFor(r *http.Request, p program) (string, error) {
	changes, err := p.changes()
	if err != nil {
		return "", err
	}
	var runner execution.Runner
	claim := execution.ClaimRequest{
		Environment: p.environment, Wait: wait, IdleTimeout: 2 * wall, Labels: map[string]string{"from": "playground"},
	}
	if err := h.Send(r, http.MethodPost, p.claims("/v1/runners"), claim, &runner); err != nil {
		return "", err
	}
	if len(changes) > 0 {
		if err := h.Send(r, http.MethodPost, asking.Path("runner", runner.ID, "files"), changes, nil); err != nil {
			h.release(r, runner.ID)
			return "", err
		}
	}
	return runner.ID, nil
}

// release throws a runner away, also when the viewer has left. What cannot be thrown away ends by its idle time.
func (h *Pages) release(r *http.Request, runnerID string) {
	ctx, cancel := h.Clock.WithTimeout(context.WithoutCancel(r.Context()), wait)
	defer cancel()
	_ = h.Send(r.WithContext(ctx), http.MethodDelete, asking.Path("runner", runnerID), nil, nil)
}

// live is the API's websocket that starts an execution in a runner of claim.
func (h *Pages) live(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("runner")
	defer h.release(r, id)
	return h.Socket(w, r, asking.Path("runner", id, "execute"))
}

// means says what a receipt means. It asks nobody: who may execute has the receipt already.
func (h *Pages) means(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Receipt                   execution.Receipt
		Claimed, FirstByte, Ended float64 // milliseconds since the run was asked for; 0: none
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxFacts)).Decode(&in); err != nil {
		return drover.Errorf(drover.Invalid, "%s: %w", parts.BadForm, err)
	}
	since := func(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
	return reply(w, http.StatusOK, Facts(&in.Receipt, Times{since(in.Claimed), since(in.FirstByte), since(in.Ended)}))
}
