package clitest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/drover-project/drover/internal/cli"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/clock"
)

// Run runs the scripts of testdata. A script has these commands and files beside testscript's own:
//
//	drover ARG…       runs a command, which must end with 0; with "!" before it, with another code
//	exits CODE ARG…   runs a command, which must end with this code
//	api/GET/v1/jobs.json   what the fake API answers to GET /v1/jobs, whatever the query; "! 404 text" is an error
//	requests               what the API was asked, a line a request: method, path with query, body
//
// Names of files are given with $WORK before them, as commands run in the test's own folder.
func Run(t *testing.T) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Dir: "testdata", RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			s := httptest.NewServer(&fakeAPI{dir: e.WorkDir})
			e.Defer(s.Close)
			e.Setenv("DROVER_ADDR", s.URL)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"drover": func(ts *testscript.TestScript, neg bool, args []string) {
				if code := run(t, ts, args); (code != 0) != neg {
					ts.Fatalf("it ended with %d", code)
				}
			},
			"exits": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) < 2 {
					ts.Fatalf("usage: exits CODE ARG…")
				}
				if code := run(t, ts, args[1:]); strconv.Itoa(code) != args[0] {
					ts.Fatalf("it ended with %d, not with %s", code, args[0])
				}
			},
		},
	})
}

// run runs one command of a script in this process and returns its exit code. Its stdin is empty.
func run(t *testing.T, ts *testscript.TestScript, args []string) int {
	t.Helper()
	app := &term.App{In: strings.NewReader(""), Out: ts.Stdout(), Err: ts.Stderr(), Getenv: ts.Getenv, Clock: clock.Wall{}}
	return cli.Main(t.Context(), app, cli.Parts{}, args)
}

// fakeAPI answers with files of a script's folder.
type fakeAPI struct {
	dir string
	mu  sync.Mutex // guards the file of requests
}

// ServeHTTP notes the request and answers with the file of its method and path. A missing file is status 501, which
// no command takes for an answer.
func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = f.note(fmt.Sprintf("%s %s %s\n", r.Method, r.URL.RequestURI(), body))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	name := filepath.Join("api", r.Method, r.URL.Path+".json")
	answer, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		http.Error(w, "the script has no "+name, http.StatusNotImplemented)
		return
	}
	reply(w, string(answer))
}

// note appends a line to the file that scripts compare. It is opened each time, since a script may remove it in
// between.
func (f *fakeAPI) note(line string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	file, err := os.OpenFile(filepath.Join(f.dir, "requests"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(line)
	if e := file.Close(); err == nil {
		err = e
	}
	return err
}
