package env_test

import (
	"archive/tar"
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/cli/clitest"
)

// runners is world with two claimed runners and a warm one, and claims that succeed.
func runners() map[string]string {
	answers := world()
	answers["GET /v1/runners"] = `[
		{"id": "py-1a", "environment": "py", "state": "claimed", "claimedAt": "2026-01-01T00:00:00Z", "labels": {"who": "me"}},
		{"id": "py-1b", "environment": "py", "state": "claimed", "claimedAt": "2026-01-01T00:00:00Z"},
		{"environment": "py", "state": "warm", "allocationId": "3f2a0000-0000-0000-0000-000000000000"}]`
	answers["POST /v1/runners"] = `{"id": "py-2", "environment": "py", "state": "claimed"}`
	for _, id := range []string{"py-1a", "py-1b", "py-2"} {
		answers["DELETE /v1/runner/"+id] = "{}"
	}
	return answers
}

func TestRunners(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, runners())
	api.Check(
		clitest.Case{Args: "runner list", Out: []string{"py-1a py claimed ", "who=me\n", "- py warm - 3f2a0000 - -\n"}},
		clitest.Case{Args: "runner list -env py -verbose", Out: []string{"3f2a0000-0000"}, Asks: []string{"GET /v1/runners?environment=py"}},
		clitest.Case{Args: "runner list -json", Out: []string{`"id": "py-1b"`}},
		clitest.Case{
			Args: "runner claim -wait 2s -idle-timeout 1m -env A=b -label k=v py", Out: []string{"py-2\n"},
			Asks: []string{`{"environment":"py","idleTimeout":60000000000,"env":{"A":"b"},"labels":{"k":"v"}`},
		},
		clitest.Case{Args: "runner claim -env A py", Code: 2, Err: []string{`-env "A": want key=value`}},
		clitest.Case{Args: "runner claim -label =b py", Code: 2, Err: []string{`-label "=b": want key=value`}},
		clitest.Case{Args: "runner rm py-1a py-1b", Asks: []string{"DELETE /v1/runner/py-1a", "DELETE /v1/runner/py-1b"}},
		clitest.Case{Args: "runner release py-1a", Asks: []string{"DELETE /v1/runner/py-1a"}},
		clitest.Case{Args: "runner rm py-1", Code: 2, Err: []string{`2 claimed runners begin with "py-1":`}},
		clitest.Case{Args: "runner rm nope", Code: 3, Err: []string{`there is no claimed runner "nope"`}},
		clitest.Case{Args: "runner exec py-1a", Code: 2, Err: []string{"1 argument given; it is: drover runner exec [flags] RUNNER COMMAND"}},
	)
	api.Set("DELETE /v1/runner/py-1a", refused("410", "gone", "it ended"))
	api.Set("POST /v1/runners", refused("503", "exhausted", "no runner came"))
	api.Check(
		clitest.Case{Args: "runner rm py-1a", Code: 1, Err: []string{"it ended"}},
		clitest.Case{Args: "runner claim py", Code: 1, Err: []string{"no runner came"}},
	)
	api.Set("GET /v1/runners", "[]")
	api.Check(clitest.Case{Args: "runner list", Out: []string{"There are no runners."}})
	api.Set("GET /v1/runners", refused("500", "internal", "broken"))
	api.Check(clitest.Case{Args: "runner list", Code: 1}, clitest.Case{Args: "runner rm py-1a", Code: 1, Err: []string{"broken"}})
}

// execution serves the WebSocket of an execution: it reads stdin to its end and sends the messages, binary ones if they begin
// with a stream's number.
func execution(stdin *string, messages ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return // the client tells
		}
		defer c.CloseNow() // nothing is left to be said
		send := func(m string) {
			kind := websocket.MessageText
			if m[0] < ' ' {
				kind = websocket.MessageBinary
			}
			_ = c.Write(r.Context(), kind, []byte(m)) // the client may be gone
		}
		if _, _, err := c.Read(r.Context()); err != nil { // the request
			return
		}
		send(`{"type": "started", "execution": "x1", "pid": 7}`)
		for kind := websocket.MessageBinary; kind == websocket.MessageBinary; { // until a text: that stdin ends
			k, data, err := c.Read(r.Context())
			if err != nil {
				return
			}
			if kind = k; k == websocket.MessageBinary {
				*stdin += string(data)
			}
		}
		for _, m := range messages {
			send(m)
		}
		_ = c.Close(websocket.StatusNormalClosure, "") // the client may have closed it
	}
}

func TestACommandRunsInAFreshRunner(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		messages []string
		want     clitest.Case
	}{
		"output and success": {
			[]string{"\x01out", "\x02err", `{"type": "receipt", "receipt": {"cause": "exited"}}`},
			clitest.Case{Out: []string{"out"}, Err: []string{"err"}},
		},
		"its code": {
			[]string{`{"type": "receipt", "receipt": {"cause": "exited", "exitCode": 7}}`},
			clitest.Case{Code: 7, Not: []string{"Error"}},
		},
		"a signal": {
			[]string{`{"type": "receipt", "receipt": {"cause": "signalled", "signal": 9, "exitCode": 137}}`},
			clitest.Case{Code: 137, Err: []string{"the command was ended by signal 9"}},
		},
		"a limit": {
			[]string{`{"type": "receipt", "receipt": {"cause": "timeout", "exitCode": 137, "truncated": true}}`},
			clitest.Case{Code: 137, Err: []string{"it took longer than -limit-wall", "Warning: some of the output was lost."}},
		},
		"no such program": {
			[]string{`{"type": "error", "code": "not_found", "message": "there is no program nope"}`},
			clitest.Case{Code: 3, Err: []string{"there is no program nope"}},
		},
		"too much output for the time between two connections": {
			[]string{"\x01out", `{"type": "skipped", "stream": "stdout", "offset": 9}`},
			clitest.Case{Code: 1, Out: []string{"out"}, Err: []string{"was too much to be kept"}},
		},
		"the connection breaks, and nobody knows it": {nil, clitest.Case{Code: 1, Err: []string{"attaching to the execution again"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := clitest.Serve(t, runners())
			api.Stdin = "typed"
			var stdin string
			api.Handle("GET /v1/runner/py-2/execute", execution(&stdin, c.messages...))
			c.want.Args, c.want.Asks = "run py cat -n", []string{"POST /v1/runners", "DELETE /v1/runner/py-2"}
			if c.want.Code == 1 { // it would run on for a while without us
				c.want.Asks = slices.Insert(c.want.Asks, 1, "DELETE /v1/execution/x1")
			}
			api.Check(c.want)
			require.Equal(t, "typed", stdin)
		})
	}
}

// The server that had the execution dies: the command goes on at the byte where its output broke off, and ends with the program's code.
func TestACommandOutlivesItsConnection(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, runners())
	var stdin string
	api.Handle("GET /v1/runner/py-2/execute", execution(&stdin, "\x01out"))
	from := make(chan string, 1)
	api.Handle("GET /v1/execution/x1/attach", func(w http.ResponseWriter, r *http.Request) {
		from <- r.URL.Query().Get("stdout")
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return // the client tells
		}
		defer c.CloseNow() // nothing is left to be said
		_ = c.Write(r.Context(), websocket.MessageText, []byte(`{"type": "started", "execution": "x1", "stdin": 0}`))
		_ = c.Write(r.Context(), websocket.MessageBinary, []byte("\x01put"))
		_ = c.Write(r.Context(), websocket.MessageText, []byte(`{"type": "receipt", "receipt": {"cause": "exited", "exitCode": 7}}`))
		_, _, _ = c.Read(r.Context()) // until the client closes it
	})
	api.Check(clitest.Case{
		Args: "run py cat", Code: 7, Out: []string{"output"}, Not: []string{"Error", "DELETE /v1/execution"},
		Asks: []string{"DELETE /v1/runner/py-2"},
	})
	require.Equal(t, "3", <-from)
}

func TestWhatARunLeaves(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, runners())
	var stdin string
	api.Handle("GET /v1/runner/py-2/execute", execution(&stdin,
		`{"type": "receipt", "receipt": {"cause": "exited", "wall": 1500000000, "userCpu": 1000000, "peakMemory": 2048, "stdoutBytes": 3}}`))
	api.Check(
		clitest.Case{
			Args: "run -keep -receipt py true", Err: []string{
				"runner py-2\n",
				"exit 0 (exited), 1.5s, 1ms of CPU, 2.0 KiB at most, 3 bytes of stdout",
			},
			Asks: []string{`"wait":60000000000`},
		},
		clitest.Case{Args: "run py true", Asks: []string{`"idleTimeout":60000000000`, "DELETE"}},
		clitest.Case{Args: "run -f /no/such py true", Code: 2, Err: []string{"copying /no/such:"}, Asks: []string{"POST", "DELETE"}},
		clitest.Case{Args: "run -env A py true", Code: 2, Err: []string{`-env "A": want key=value`}, Asks: []string{"DELETE"}},
		clitest.Case{Args: "run -secret A=db py true", Code: 2, Err: []string{`-secret "A=db": want NAME=PATH#KEY`}, Asks: []string{"DELETE"}},
		clitest.Case{Args: "run py", Code: 2, Err: []string{"1 argument given; it is: drover run ENV [-f FILE]… COMMAND"}},
	)
	api.Set("DELETE /v1/runner/py-2", refused("500", "internal", "broken"))
	api.Check(clitest.Case{Args: "run py true", Err: []string{"Warning: runner py-2 was not ended: broken"}})
	api.Set("DELETE /v1/runner/py-2", refused("410", "gone", "it ended"))
	api.Check(clitest.Case{Args: "run py true", Not: []string{"Warning"}})
	api.Set("POST /v1/runners", refused("404", "not_found", "there is no environment"))
	api.Check(clitest.Case{Args: "run nope true", Code: 3, Err: []string{"there is no environment"}})
}

func TestFilesAreCopiedIn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plain"), []byte("text"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "program"), []byte("#!"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	require.NoError(t, os.Symlink("../plain", filepath.Join(dir, "sub", "link")))
	answers := runners()
	answers["PUT /v1/runner/py-1a/file"] = "{}"
	answers["POST /v1/runner/py-1a/files"] = "{}"
	api := clitest.Serve(t, answers)
	var names []string
	var modes []int64
	api.Handle("PUT /v1/runner/py-1a/archive", func(_ http.ResponseWriter, r *http.Request) {
		for list := tar.NewReader(r.Body); ; {
			h, err := list.Next()
			if err != nil {
				return
			}
			names, modes = append(names, h.Name+h.Linkname), append(modes, h.Mode&0o777)
		}
	})
	api.Stdin = "piped"
	api.Check(
		clitest.Case{Args: "runner cp " + dir + "/plain py-1a:", Asks: []string{"/file?mode=644&path=plain text"}},
		clitest.Case{Args: "runner cp " + dir + "/program py-1a:bin/", Asks: []string{"mode=755&path=bin%2Fprogram"}},
		clitest.Case{Args: "runner cp " + dir + "/plain py-1a:other", Asks: []string{"path=other"}},
		clitest.Case{Args: "runner cp - py-1a:x", Asks: []string{"path=x piped"}},
		clitest.Case{Args: "runner cp - py-1a:x/", Code: 2, Err: []string{"TO: name the file, as in py-1a:x/NAME: stdin has no name"}},
		clitest.Case{Args: "runner cp " + dir + " py-1a:copy", Asks: []string{`POST /v1/runner/py-1a/files [{`}},
		clitest.Case{Args: "runner cp a b", Code: 2, Err: []string{"one of FROM and TO is RUNNER:PATH"}},
		clitest.Case{Args: "runner cp py-1a:a py-1a:b", Code: 2, Err: []string{"one of FROM and TO is RUNNER:PATH"}},
		clitest.Case{Args: "runner cp ./a:b nope:", Code: 3, Err: []string{`there is no claimed runner "nope"`}},
	)
	require.Equal(t, []string{"plain", "program", "sub", "sub/link../plain"}, names)
	require.Equal(t, []int64{0o644, 0o755, 0o755, 0o777}, modes, "whoever runs there can read them")
	api.Set("PUT /v1/runner/py-1a/file", refused("403", "forbidden", "not there"))
	api.Check(clitest.Case{Args: "runner cp " + dir + "/plain py-1a:/etc/", Code: 1, Err: []string{"copying " + dir + "/plain: not there"}})
}

// archive is a tar of members, each a header; regular files hold their own name.
func archive(t *testing.T, members ...tar.Header) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range members {
		if h.Typeflag == tar.TypeReg {
			h.Size, h.Mode = int64(len(h.Name)), 0o644
		}
		require.NoError(t, w.WriteHeader(&h))
		if h.Typeflag == tar.TypeReg {
			_, err := io.WriteString(w, h.Name)
			require.NoError(t, err)
		}
	}
	require.NoError(t, w.Close())
	return b.String()
}

func TestFilesAreCopiedOut(t *testing.T) {
	t.Parallel()
	answers := runners()
	answers["GET /v1/runner/py-1a/file"] = "result"
	answers["GET /v1/runner/py-1a/archive"] = archive(t,
		tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755}, tar.Header{Name: "sub/", Typeflag: tar.TypeDir, Mode: 0o755},
		tar.Header{Name: "sub/x", Typeflag: tar.TypeReg}, tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "sub/x"},
		tar.Header{Name: "device", Typeflag: tar.TypeChar})
	api := clitest.Serve(t, answers)
	dir := t.TempDir()
	api.Check(
		clitest.Case{Args: "runner cp py-1a:result.csv " + dir, Asks: []string{"/file?path=result.csv"}},
		clitest.Case{Args: "runner cp -privileged py-1a:result.csv " + dir + "/other", Asks: []string{"privileged=true"}},
		clitest.Case{Args: "runner cp py-1a:result.csv -", Out: []string{"result"}},
		clitest.Case{Args: "runner cp -r py-1a: " + dir + "/folder", Asks: []string{"/archive?path=."}},
		clitest.Case{Args: "runner cp -r py-1a:a -", Out: []string{"sub/x"}},
		clitest.Case{Args: "runner cp py-1a:x /no/such/folder/x", Code: 1, Err: []string{"no such file or directory"}},
	)
	for path, want := range map[string]string{"result.csv": "result", "other": "result", "folder/sub/x": "sub/x", "folder/link": "sub/x"} {
		text, err := os.ReadFile(filepath.Join(dir, path))
		require.NoError(t, err)
		require.Equal(t, want, string(text), path)
	}
	require.NoFileExists(t, filepath.Join(dir, "folder/device"))
	api.Set("GET /v1/runner/py-1a/file", refused("400", "invalid", "it is a folder"))
	api.Check(clitest.Case{
		Args: "runner cp py-1a:a " + dir, Code: 2,
		Err: []string{`copying "a" (a folder is copied with -r): it is a folder`},
	})
	api.Set("GET /v1/runner/py-1a/file", refused("404", "not_found", "no such file"))
	api.Check(clitest.Case{Args: "runner cp py-1a:a " + dir, Code: 3, Err: []string{"no such file"}})
}

// TestARunnerCannotWriteBesideTheFolder: what it sends is not trusted.
func TestARunnerCannotWriteBesideTheFolder(t *testing.T) {
	t.Parallel()
	for name, members := range map[string][]tar.Header{
		"a path upwards": {{Name: "../out", Typeflag: tar.TypeReg}},
		"a link, and a file behind it": {
			{Name: "way", Typeflag: tar.TypeSymlink, Linkname: ".."}, {Name: "way/out", Typeflag: tar.TypeReg},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers := runners()
			answers["GET /v1/runner/py-1a/archive"] = archive(t, members...)
			api := clitest.Serve(t, answers)
			dir := t.TempDir()
			api.Check(clitest.Case{Args: "runner cp -r py-1a:x " + dir + "/in", Code: 1, Err: []string{"copying to " + dir + "/in:"}})
			require.NoFileExists(t, filepath.Join(dir, "out"))
		})
	}
}

// TestARunnerThatDoesNotComeIsWaitedForAloud tells how the pool stands, once a second.
func TestARunnerThatDoesNotComeIsWaitedForAloud(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, runners())
	again := make(chan struct{}) // the pool was asked about twice: its first line is printed
	asked := 0
	api.Handle("GET /v1/environment/py/pool", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"size": 2, "queued": 2, "waiting": 1, "lastError": "no room"}`) // the client is this process
		if asked++; asked == 2 {
			close(again)
		}
	})
	api.Handle("POST /v1/runners", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-again:
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, `{"id": "py-2"}`) // the client is this process
	})
	const line = "waiting for a runner of \"py\": 0 of 2 warm, 2 queued, 1 claim waiting; last error: no room\n"
	r := api.Run("runner", "claim", "py")
	require.Equal(t, "py-2\n", r.Out)
	require.Equal(t, line, r.Err, "what does not change is told once")
}
