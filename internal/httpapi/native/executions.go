package native

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/policy"
)

// executionOperations are those that start executions, and those on one.
func (f *Face) executionOperations() []operation {
	return append([]operation{
		{
			Route:   httpapi.Route{Pattern: "GET /v1/runner/{runner}/executions", Where: onRunner, Need: reads, Handle: f.listExecutions},
			summary: "List a runner's executions",
			out:     []execution.Execution{},
		},
		{
			Route: httpapi.Route{
				Pattern: "POST /v1/runner/{runner}/executions", Where: onRunner, Need: executes.Knowing(), Handle: f.once(f.createExecution),
				MaxBody: f.MaxFiles,
			},
			summary: "Start an execution",
			query:   []param{keyParam},
			in:      execution.Request{}, out: execution.Execution{}, status: []int{http.StatusCreated},
		},
		{
			Route: httpapi.Route{Pattern: "GET /v1/runner/{runner}/execute", Where: onRunner, Need: executes, Handle: f.execute, Stream: true},
			summary: "Start an execution and attach to it (websocket); the ExecutionRequest is the first message, or the header " +
				"Drover-Execution (JSON in base64), which spares a round trip: then the handshake is answered when the command " +
				"was started, and the answer has the header too",
			query: []param{messagesParam, stdinParam, earlyParam},
			raw:   "websocket", status: []int{http.StatusSwitchingProtocols},
		},
		{
			Route:   httpapi.Route{Pattern: "POST /v1/run", Where: claims, Need: runs, Handle: f.once(f.run), MaxBody: f.MaxFiles},
			summary: "Claim a runner, run a command with files, release the runner",
			query:   []param{namespaceParam, keyParam},
			in:      execution.RunRequest{}, out: execution.RunResult{},
		},
	}, f.oneExecutionOperations()...)
}

// oneExecutionOperations are those on one execution.
func (f *Face) oneExecutionOperations() []operation {
	return []operation{
		{
			Route:   httpapi.Route{Pattern: "GET /v1/execution/{execution}", Where: ofExecution, Need: follows, Handle: f.getExecution},
			summary: "Read an execution, or wait for its end",
			query:   []param{waitParam},
			out:     execution.Execution{},
		},
		{
			Route: httpapi.Route{
				Pattern: "DELETE /v1/execution/{execution}", Where: ofExecution, Need: controls,
				Handle: f.controlling(f.killExecution),
			},
			summary: "Kill an execution",
		},
		{
			Route: httpapi.Route{
				Pattern: "GET /v1/execution/{execution}/attach", Where: ofExecution, Need: controls,
				Handle: f.controlling(f.attach), Stream: true,
			},
			summary: "Attach to an execution (websocket)",
			query:   attachParams,
			raw:     "websocket", status: []int{http.StatusSwitchingProtocols},
		},
		{
			Route: httpapi.Route{
				Pattern: "GET /v1/execution/{execution}/output", Where: ofExecution, Need: controls,
				Handle: f.controlling(f.output), Stream: true,
			},
			summary: "Read one output stream until the end",
			query:   outputParameters,
			raw:     "out",
		},
		{
			Route: httpapi.Route{
				Pattern: "POST /v1/execution/{execution}/stdin", Where: ofExecution, Need: controls,
				Handle: f.controlling(f.stdin), MaxBody: -1,
			},
			summary: "Send stdin from the body",
			query:   []param{{Name: "close", Kind: "boolean", About: "end stdin after it"}},
			raw:     "in",
		},
		{
			Route: httpapi.Route{
				Pattern: "POST /v1/execution/{execution}/signal", Where: ofExecution, Need: controls,
				Handle: f.controlling(f.signal),
			},
			summary: "Send a signal",
			in:      SignalBody{},
		},
		{
			Route: httpapi.Route{
				Pattern: "POST /v1/execution/{execution}/resize", Where: ofExecution, Need: controls,
				Handle: f.controlling(f.resize),
			},
			summary: "Set the terminal's size",
			in:      execution.WindowSize{},
		},
	}
}

// SignalBody names a signal.
type SignalBody struct {
	Signal string `json:"signal"` // "INT", "SIGTERM"; "KILL" ends the whole tree
}

// listExecutions answers GET /v1/runner/ID/executions, with those that ended and are still kept.
func (f *Face) listExecutions(w http.ResponseWriter, r *http.Request) error {
	list, err := f.Executions.List(r.Context(), r.PathValue("runner"))
	return answer(w, r, http.StatusOK, list, err)
}

// createExecution starts an execution that no client is attached to. Its output is kept for a later attach, as far
// as the limits of the journal allow.
func (f *Face) createExecution(w http.ResponseWriter, r *http.Request) error {
	var req execution.Request
	if err := httpapi.DecodeStrictJSON(r, &req); err != nil {
		return err
	}
	req.Once = onceOf(r)
	if err := f.reveal(r.Context(), execution.NamespaceOf(r.PathValue("runner")), &req.Spec); err != nil {
		return err
	}
	x, err := f.Executions.CreateRequest(r.Context(), r.PathValue("runner"), req)
	return answer(w, r, http.StatusCreated, x, err)
}

// getExecution answers GET /v1/execution/ID. With wait it is a long poll: it answers at the end of the execution,
// or when the time is over, with the execution as it then is.
func (f *Face) getExecution(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("execution")
	wait, err := f.waitOf(r)
	if err != nil {
		return err
	}
	if err := f.allowed(r, policy.ReadRunner); err != nil {
		return err
	}
	if wait == 0 {
		x, err := f.Executions.Info(r.Context(), id)
		return answer(w, r, http.StatusOK, x, err)
	}
	ctx, cancel := f.Clock.WithTimeout(r.Context(), wait)
	defer cancel()
	x, err := f.Executions.Wait(ctx, id)
	if errors.Is(err, context.DeadlineExceeded) && r.Context().Err() == nil {
		err = nil // it still runs: as it is now
	}
	return answer(w, r, http.StatusOK, x, err)
}

// waitOf reads the query's wait; 0 without one. A longer wait than MaxWait is shortened without an error, because
// the client polls again anyway. Errors: Invalid.
func (f *Face) waitOf(r *http.Request) (time.Duration, error) {
	text := r.URL.Query().Get("wait")
	if text == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait < 0 {
		return 0, drover.Errorf(drover.Invalid, `wait: want a duration as in "30s", got %q`, text)
	}
	return min(wait, f.MaxWait), nil
}

// killExecution kills the whole tree of processes, as the signal KILL does. The execution stays readable: only its
// processes end.
func (f *Face) killExecution(w http.ResponseWriter, r *http.Request) error {
	return f.onExecution(w, r, func(s execution.Session) error { return s.Signal(r.Context(), "KILL") })
}

// onExecution calls do with a session that controls the execution, but reads none of its output. It answers 204.
func (f *Face) onExecution(w http.ResponseWriter, r *http.Request, do func(execution.Session) error) error {
	session, err := f.Executions.Control(r.Context(), r.PathValue("execution"))
	if err != nil {
		return err
	}
	return done(w, do(session))
}

// signal answers POST /v1/execution/ID/signal. Which names are known is up to the session, which refuses others as
// Invalid.
func (f *Face) signal(w http.ResponseWriter, r *http.Request) error {
	var body SignalBody
	if err := httpapi.DecodeStrictJSON(r, &body); err != nil {
		return err
	}
	if body.Signal == "" {
		return drover.Errorf(drover.Invalid, "signal: missing")
	}
	return f.onExecution(w, r, func(s execution.Session) error { return s.Signal(r.Context(), body.Signal) })
}

// resize answers POST /v1/execution/ID/resize with the terminal's new size.
func (f *Face) resize(w http.ResponseWriter, r *http.Request) error {
	var size execution.WindowSize
	if err := httpapi.DecodeStrictJSON(r, &size); err != nil {
		return err
	}
	return f.onExecution(w, r, func(s execution.Session) error { return resize(r.Context(), s, size) })
}

// resize refuses a size of 0, which terminals take for "unknown". The websocket's resize message has the same rule.
func resize(ctx context.Context, s execution.Session, size execution.WindowSize) error {
	if size.Rows == 0 || size.Cols == 0 {
		return drover.Errorf(drover.Invalid, "rows and cols: want 1 or more")
	}
	return s.Resize(ctx, size)
}

// stdin streams the body into the program. One that read all of it and ended has its stdin closed already.
func (f *Face) stdin(w http.ResponseWriter, r *http.Request) error {
	end, err := flag(r, "close")
	if err != nil {
		return err
	}
	return f.onExecution(w, r, func(s execution.Session) error {
		buf, body := make([]byte, 32<<10), httpapi.Upload(w, r, f.Clock, 0) // it may be typed
		taken := false
		for {
			n, err := body.Read(buf)
			if n > 0 {
				taken = true
				if err := s.Write(r.Context(), buf[:n]); err != nil {
					return err
				}
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
		}
		if !end {
			return nil
		}
		err := s.CloseStdin(r.Context())
		if taken && drover.CodeOf(err) == drover.Conflict {
			return nil
		}
		return err
	})
}

// output streams one of the program's streams to its end.
func (f *Face) output(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	stream, from, err := outputParams(q.Get("stream"), q.Get("offset"))
	if err != nil {
		return err
	}
	session, err := f.reader(r, from)
	if err != nil {
		return err
	}
	defer session.Close() //nolint:errcheck // detaching cannot fail
	w.Header().Set("Content-Type", "application/octet-stream")
	control := http.NewResponseController(w)
	for {
		frame, err := session.Next(r.Context())
		if errors.Is(err, io.EOF) || frame.Receipt != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if frame.Stream != stream {
			continue
		}
		if frame.Skipped {
			w.Header().Set("Drover-Offset", strconv.FormatInt(frame.Offset, 10)) // seen if nothing was sent yet
		}
		if _, err := w.Write(frame.Data); err != nil {
			return err
		}
		if err := control.Flush(); err != nil {
			return err
		}
	}
}

// outputParams puts the other stream's offset behind everything.
func outputParams(stream, offset string) (execution.Stream, execution.Offsets, error) {
	// No stream gets this long, and the sum with a frame's length does not overflow an int64.
	const never = 1 << 62
	at, err := offsetOf(offset)
	if err != nil {
		return 0, execution.Offsets{}, err
	}
	switch stream {
	case "", "stdout":
		return execution.Stdout, execution.Offsets{Stdout: at, Stderr: never}, nil
	case "stderr":
		return execution.Stderr, execution.Offsets{Stdout: never, Stderr: at}, nil
	}
	return 0, execution.Offsets{}, drover.Errorf(drover.Invalid, "stream: want stdout or stderr, got %q", stream)
}

// offsetOf reads a byte offset; 0 without one. 62 bits leave room for adding lengths. Errors: Invalid.
func offsetOf(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	at, err := strconv.ParseInt(text, 10, 62)
	if err != nil || at < 0 {
		return 0, drover.Errorf(drover.Invalid, "offset: want 0 or more bytes, got %q", text)
	}
	return at, nil
}

// run answers POST /v1/run. The request lasts as long as the command; a client that leaves ends it, since ctx ends
// with the request: with an idempotency key a minute later, unless it comes back.
func (f *Face) run(w http.ResponseWriter, r *http.Request) error {
	var req execution.RunRequest
	if err := httpapi.DecodeStrictJSON(r, &req); err != nil {
		return err
	}
	if err := claimIn(r, &req.Namespace, &req.Environment); err != nil {
		return err
	}
	req.Once = onceOf(r)
	if err := f.reveal(r.Context(), httpapi.AskedNamespace(r), &req.Spec); err != nil {
		return err
	}
	result, err := f.Executions.RunOnce(r.Context(), req)
	return answer(w, r, http.StatusOK, result, err)
}
