package clitest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/drover-project/drover/internal/cli"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/clock"
)

// API is a fake of an agent's API that answers with given texts and remembers what it was asked. Its goroutines end with
// the test.
type API struct {
	Parts cli.Parts         // of the program that the commands belong to
	Env   map[string]string // the environment of the commands, beside DROVER_ADDR
	Stdin string

	t      *testing.T
	server *httptest.Server
	routes map[string]http.HandlerFunc

	// Guarded by mu.
	mu      sync.Mutex
	answers map[string][]string
	asked   []string
}

// Serve starts a fake that gives these answers, by method and path ("GET /v1/jobs"), whatever the query. "! 404 text"
// is an error. Of several answers, separated by a line "---", each is given once, the last for ever.
func Serve(t *testing.T, answers map[string]string) *API {
	t.Helper()
	a := &API{t: t, answers: map[string][]string{}, routes: map[string]http.HandlerFunc{}}
	for k, v := range answers {
		a.answers[k] = strings.Split(v, "\n---\n")
	}
	a.server = httptest.NewServer(a)
	t.Cleanup(a.server.Close)
	return a
}

// Handle lets h answer a method and path, for what is no text: a stream, a WebSocket.
func (a *API) Handle(route string, h http.HandlerFunc) { a.routes[route] = h }

// Set replaces the answers of a method and path.
func (a *API) Set(route, answers string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers[route] = strings.Split(answers, "\n---\n")
}

// Address is the fake's.
func (a *API) Address() string { return a.server.URL }

// Asked returns what was asked since the last call: a line a request, with method, path and query, and the body.
func (a *API) Asked() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := a.asked
	a.asked = nil
	return asked
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	route := r.Method + " " + r.URL.Path
	if h := a.routes[route]; h != nil {
		h(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	text, found := a.next(route, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
	if !found {
		http.Error(w, "the test has no answer to "+route, http.StatusNotImplemented)
		return
	}
	reply(w, text)
}

// next notes a request and takes the answer to it. The last answer stays, so that a poll can go on. found is false if
// the test gave none for this method and path.
func (a *API) next(route, line string) (text string, found bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, line)
	list, found := a.answers[route]
	if len(list) > 1 {
		a.answers[route] = list[1:]
	}
	if len(list) > 0 {
		text = list[0]
	}
	return text, found
}

// reply sends a text, which is an error if it begins with "! CODE ".
func reply(w http.ResponseWriter, text string) {
	if refused, ok := strings.CutPrefix(text, "! "); ok {
		code, message, _ := strings.Cut(strings.TrimSpace(refused), " ")
		status, err := strconv.Atoi(code)
		if err != nil {
			status = http.StatusInternalServerError
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, message) // the client is this process
		return
	}
	w.Header().Set("X-Nomad-Index", "7")
	_, _ = io.WriteString(w, text) // the client is this process
}

// Result is how a command ended.
type Result struct {
	Code     int
	Out, Err string
}

// Run runs a command, given by its words.
func (a *API) Run(args ...string) Result { return a.RunContext(a.t.Context(), args...) }

// RunContext is Run until ctx ends, as Ctrl-C ends a command.
func (a *API) RunContext(ctx context.Context, args ...string) Result {
	var out, errs bytes.Buffer
	app := &term.App{In: strings.NewReader(a.Stdin), Out: &out, Err: &errs, Getenv: a.getenv, Clock: clock.Wall{}}
	code := cli.Main(ctx, app, a.Parts, args)
	return Result{Code: code, Out: out.String(), Err: errs.String()}
}

// getenv is the commands' environment: that of the process must not reach them, as it may name a real agent.
func (a *API) getenv(key string) string {
	if key == "DROVER_ADDR" {
		return a.server.URL
	}
	return a.Env[key]
}

// Case is one command of a table, and what must come of it.
type Case struct {
	Args string // words, separated by blanks
	Code int
	Out  []string // that stdout contains; several blanks count as one, as in a table
	Err  []string // that stderr contains
	Not  []string // that neither contains
	Asks []string // that requests contain, in this order
}

// Check runs the cases one after the other against the same fake.
func (a *API) Check(cases ...Case) {
	a.t.Helper()
	for _, c := range cases {
		a.Asked()
		r := a.Run(strings.Fields(c.Args)...)
		about := fmt.Sprintf("drover %s\nended with %d\nstdout: %s\nstderr: %s", c.Args, r.Code, r.Out, r.Err)
		if r.Code != c.Code {
			a.t.Errorf("%s\nwant code %d", about, c.Code)
		}
		holds(a.t, about, "stdout", r.Out, c.Out)
		holds(a.t, about, "stderr", r.Err, c.Err)
		for _, not := range c.Not {
			if strings.Contains(r.Out+r.Err, not) {
				a.t.Errorf("%s\nmust not contain %q", about, not)
			}
		}
		a.asks(about, a.Asked(), c.Asks)
	}
}

// holds fails the test for each part that the text lacks; about says which command it was.
func holds(t *testing.T, about, where, text string, parts []string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(squeezed(text), squeezed(part)) {
			t.Errorf("%s\n%s must contain %q", about, where, part)
		}
	}
}

// squeezed returns the text with several blanks made one, so that a test need not know how wide a table's columns
// are.
func squeezed(text string) string {
	var b strings.Builder
	last := rune(0)
	for _, r := range text {
		if r != ' ' || last != ' ' {
			b.WriteRune(r)
		}
		last = r
	}
	return b.String()
}

// asks checks that for each part there is a request, each after the one before.
func (a *API) asks(about string, asked, parts []string) {
	a.t.Helper()
	at := 0
	for _, part := range parts {
		for at < len(asked) && !strings.Contains(asked[at], part) {
			at++
		}
		if at == len(asked) {
			a.t.Errorf("%s\nno request contains %q (in this order):\n%s", about, part, strings.Join(asked, "\n"))
			return
		}
		at++
	}
}
