package native_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exec/exectest"
	"github.com/drover-project/drover/internal/exec/facetest"
	"github.com/drover-project/drover/internal/exec/runner"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/fleet"
	"github.com/drover-project/drover/internal/httpapi/native"
)

var update = flag.Bool("update", false, "write openapi.json anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is the face over the real execution service over an in-memory control and node, and a client of it.
type world struct {
	*client.Client
	t       *testing.T
	control *exectest.Control
	runners *runner.Service
	server  *httptest.Server
}

const token = "secret"

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldWith(t, native.Config{})
}

func newWorldWith(t *testing.T, cfg native.Config) *world {
	t.Helper()
	served := facetest.Serve(t, httpapi.Config{Resolver: httpapi.OneToken(token)}, func(s *facetest.World) httpapi.Face {
		return native.New(cfg, native.Deps{
			Environments: s.Runners, Runners: s.Runners, Executions: s.Executions, Observations: s.Executions,
			Variables: variables{}, Receipts: receipts{},
			Clock: clock.Wall{}, Log: s.Log,
		})
	}, func(h http.Handler) http.Handler { return described(t, h) })
	cl, err := client.New(served.Server.URL, client.WithToken(token))
	require.NoError(t, err)
	return &world{cl, t, served.Control, served.Runners, served.Server}
}

// claim makes environment "e" and claims a runner of it.
func (w *world) claim() execution.Runner {
	w.t.Helper()
	_, _, err := w.PutEnvironment(w.t.Context(), execution.Environment{ID: "e", Image: "host", PoolSize: 2, Env: map[string]string{"A": "b"}})
	require.NoError(w.t, err)
	r, err := w.Claim(w.t.Context(), execution.ClaimRequest{Environment: "e", Wait: time.Minute})
	require.NoError(w.t, err)
	return r
}

func code(err error) drover.Code { return drover.CodeOf(err) }

func TestEnvironments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	put, created, err := w.PutEnvironment(t.Context(), execution.Environment{ID: "py-1", Image: "host", PoolSize: 3})
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, "sandbox", put.Driver)
	_, created, err = w.PutEnvironment(t.Context(), put)
	require.NoError(t, err)
	require.False(t, created)
	envs, err := w.Environments(t.Context())
	require.NoError(t, err)
	require.Equal(t, []execution.Environment{put}, envs)
	exectest.AwaitWarm(t, w.runners, 3)
	pool, err := w.Pool(t.Context(), "py-1")
	require.NoError(t, err)
	require.Equal(t, execution.PoolStatus{Environment: "py-1", Size: 3, Warm: 3}, pool)
	_, _, err = w.PutEnvironment(t.Context(), execution.Environment{ID: "bad", Image: "NO", PoolSize: -1})
	require.Equal(t, drover.Invalid, code(err))
	require.ErrorContains(t, err, "poolSize")
	_, err = w.Environment(t.Context(), "bad")
	require.Equal(t, drover.NotFound, code(err))
	resized, err := w.ResizePool(t.Context(), "py-1", 2, new(3))
	require.NoError(t, err)
	put.PoolSize = 2
	require.Equal(t, put, resized)
	_, err = w.ResizePool(t.Context(), "py-1", 5, new(3))
	require.Equal(t, drover.Conflict, code(err))
	require.ErrorContains(t, err, "poolSize is 2, not 3")
	_, err = w.ResizePool(t.Context(), "py-1", -1, nil)
	require.Equal(t, drover.Invalid, code(err))
	_, err = w.ResizePool(t.Context(), "nothing", 1, nil)
	require.Equal(t, drover.NotFound, code(err))
	require.NoError(t, w.DeleteEnvironment(t.Context(), "py-1"))
	require.Equal(t, drover.NotFound, code(w.DeleteEnvironment(t.Context(), "py-1")))
}

func TestRunners(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.claim()
	got, err := w.Runner(t.Context(), r.ID)
	require.NoError(t, err)
	require.Equal(t, execution.RunnerClaimed, got.State)
	got, err = w.Extend(t.Context(), r.ID, time.Hour)
	require.NoError(t, err)
	require.Equal(t, time.Hour, got.IdleTimeout)
	list, err := w.Runners(t.Context(), "e")
	require.NoError(t, err)
	require.NotEmpty(t, list)
	require.NoError(t, w.Release(t.Context(), r.ID))
	require.Equal(t, drover.Gone, code(w.Release(t.Context(), r.ID)))
	_, err = w.Claim(t.Context(), execution.ClaimRequest{Environment: "nothing"})
	require.Equal(t, drover.NotFound, code(err))
	_, err = w.Claim(t.Context(), execution.ClaimRequest{})
	require.Equal(t, drover.Invalid, code(err))
	filled, err := w.Claim(t.Context(), execution.ClaimRequest{Environment: "e", Wait: time.Minute},
		execution.FileChange{Path: "a", Write: true, Data: []byte("x")})
	require.NoError(t, err)
	infos, err := w.ListFiles(t.Context(), filled.ID, execution.FileRequest{})
	require.NoError(t, err)
	require.Len(t, infos, 1)
}

func read(t *testing.T, r io.ReadCloser, err error) string {
	t.Helper()
	require.NoError(t, err)
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	return string(text)
}

func TestCutUploadsAreTheSendersFault(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, native.Config{UploadStall: 100 * time.Millisecond})
	r := "/v1/runner/" + w.claim().ID
	for _, request := range []string{
		"PUT " + r + "/file?path=cut HTTP/1.1\r\nContent-Length: 10\r\n\r\nhello",
		"PUT " + r + "/file?path=cut HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n",
		"PUT " + r + "/file?path=stalls HTTP/1.1\r\nContent-Length: 10\r\n\r\nhello",
	} {
		conn, err := net.Dial("tcp", w.server.Listener.Addr().String())
		require.NoError(t, err)
		_, err = io.WriteString(conn, strings.Replace(request, "\r\n", "\r\nHost: localhost\r\nX-Drover-Token: "+token+"\r\n", 1))
		require.NoError(t, err)
		if !strings.Contains(request, "stalls") {
			require.NoError(t, conn.(*net.TCPConn).CloseWrite())
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusBadRequest, res.StatusCode)
		require.Contains(t, string(text), "in part only")
		require.NoError(t, conn.Close())
	}
	res, _ := w.raw("GET", r+"/file?path=cut", "")
	require.Equal(t, http.StatusNotFound, res.StatusCode, "an upload is atomic")
}

// An upload whose runner is released is answered at once, though its sender says nothing.
func TestUploadsEndWithTheirRunner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, route := range []string{"/file?path=x", "/archive?path=x"} {
		runner := w.claim().ID
		conn, err := net.Dial("tcp", w.server.Listener.Addr().String())
		require.NoError(t, err)
		_, err = io.WriteString(conn, "PUT /v1/runner/"+runner+route+" HTTP/1.1\r\nHost: localhost\r\n"+
			"X-Drover-Token: "+token+"\r\nExpect: 100-continue\r\nContent-Length: 1000000\r\n\r\n")
		require.NoError(t, err)
		in := bufio.NewReader(conn)
		status, err := in.ReadString('\n') // it is being read
		require.NoError(t, err)
		require.Contains(t, status, "100 Continue")
		_, err = in.ReadString('\n')
		require.NoError(t, err)
		require.NoError(t, w.Release(t.Context(), runner))
		res, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusGone, res.StatusCode, string(text))
		require.NoError(t, conn.Close())
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.claim().ID
	ctx := t.Context()
	require.NoError(t, w.WriteFile(ctx, r, execution.FileChange{Path: "a b/c", Mode: 0o600}, strings.NewReader("0123456789")))
	require.NoError(t, w.WriteFile(ctx, r, execution.FileChange{Path: "\xff\n'"}, strings.NewReader("x")))
	infos, err := w.ListFiles(ctx, r, execution.FileRequest{Recursive: true})
	require.NoError(t, err)
	require.Len(t, infos, 2)
	require.Equal(t, "a b/c", infos[0].Path)
	require.Equal(t, uint32(0o600), infos[0].Mode)
	require.Equal(t, "\xff\n'", infos[1].Path, "names are bytes")

	whole, err := w.ReadFile(ctx, r, execution.FileRequest{Path: "a b/c"})
	require.Equal(t, "0123456789", read(t, whole, err))
	part, err := w.ReadFile(ctx, r, execution.FileRequest{Path: "a b/c", Offset: 2, Length: 3})
	require.Equal(t, "234", read(t, part, err))
	end, err := w.ReadFile(ctx, r, execution.FileRequest{Path: "a b/c", Offset: 8})
	require.Equal(t, "89", read(t, end, err))
	res, body := w.raw("GET", "/v1/runner/"+r+"/file?path=a+b/c", "", "Range: bytes=-4")
	require.Equal(t, "6789", body)
	require.Equal(t, "bytes 6-9/10", res.Header.Get("Content-Range"))
	res, body = w.raw("GET", "/v1/runner/"+r+"/file?path=a+b/c", "", "Range: bytes=7-99999999999999999999")
	require.Equal(t, "789", body)
	tag, at := res.Header.Get("ETag"), res.Header.Get("Last-Modified")
	for condition, want := range map[string]int{
		`If-Range: "another"`: 200, "If-Range: " + tag: 206, "If-Range: " + at: 206, "If-Range: Thu, 01 Jan 1970 00:00:10 GMT": 200,
		"If-None-Match: " + tag: 304, "If-None-Match: *": 304, `If-None-Match: "a", "b"`: 206,
		`If-Match: "another"`: 412, `If-Match: "another", ` + tag: 206,
		"If-Modified-Since: " + at: 304, "If-Modified-Since: Thu, 01 Jan 1970 00:00:10 GMT": 206,
		"If-Unmodified-Since: " + at: 206, "If-Unmodified-Since: Thu, 01 Jan 1970 00:00:10 GMT": 412,
	} {
		res, body = w.raw("GET", "/v1/runner/"+r+"/file?path=a+b/c", "", "Range: bytes=-4", condition)
		require.Equal(t, want, res.StatusCode, condition)
		if text := map[int]string{200: "0123456789", 206: "6789", 304: ""}; want != 412 {
			require.Equal(t, text[want], body, condition)
		}
	}
	for _, none := range []string{"bytes=10-", "bytes=-0"} {
		res, _ = w.raw("GET", "/v1/runner/"+r+"/file?path=a+b/c", "", "Range: "+none)
		require.Equal(t, http.StatusRequestedRangeNotSatisfiable, res.StatusCode, none)
	}

	require.NoError(t, w.ChangeFiles(ctx, r, execution.FileChange{Path: "d", Mkdir: true}, execution.FileChange{Path: "a b", Delete: true}))
	_, err = w.ReadFile(ctx, r, execution.FileRequest{Path: "a b/c"})
	require.Equal(t, drover.NotFound, code(err))
	require.Equal(t, drover.Invalid, code(w.ChangeFiles(ctx, r, execution.FileChange{Path: "d"})))
	_, err = w.ListFiles(ctx, r, execution.FileRequest{Path: "forbidden"})
	require.Equal(t, drover.Forbidden, code(err))

	tar, err := w.Archive(ctx, r, execution.FileRequest{Path: "d"})
	require.Equal(t, "tar of d", read(t, tar, err))
	require.NoError(t, w.Extract(ctx, r, execution.FileRequest{Path: "d"}, strings.NewReader("tar")))
	unpacked, err := w.ReadFile(ctx, r, execution.FileRequest{Path: "d/extracted"})
	require.Equal(t, "tar", read(t, unpacked, err))
}

// raw sends a request with the token.
func (w *world) raw(method, path, body string, headers ...string) (*http.Response, string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, w.server.URL+path, strings.NewReader(body))
	require.NoError(w.t, err)
	req.Header.Set("X-Drover-Token", token)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	res, err := w.server.Client().Do(req)
	require.NoError(w.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(w.t, err)
	return res, string(text)
}

func TestBadRequestsSayWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	claimed := w.claim().ID
	r := "/v1/runner/" + claimed
	x, err := w.StartExecution(t.Context(), claimed, execution.Request{Command: "sleep", Spec: execution.Spec{Detach: -1}})
	require.NoError(t, err)
	for _, tc := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"PUT", "/v1/environment/x", "{", 400, `"code":"invalid"`},
		{"PUT", "/v1/environment/x", `{"id":"y","image":"host"}`, 400, "not that of the path"},
		{"PUT", "/v1/environment/x", `{"image":7}`, 400, "image"},
		{"PUT", "/v1/environment/a%2Fb", `{"image":"host"}`, 400, "id"},
		{"POST", "/v1/runners", `{"environment":"e","wait":"soon"}`, 400, `wait: \"soon\" is no duration`},
		{"POST", r + "/files", `[{"path":"x","text":"a","data":"YQ=="}]`, 400, "files[0]: both text and data"},
		{"POST", r + "/files", `[{"path":"x","text":"a","mkdir":true}]`, 400, "exactly one"},
		{"POST", "/v1/runners", `{"environment":"none"}`, 404, `"code":"not_found"`},
		{"GET", "/v1/runner/none", "", 404, "not found"},
		{"PATCH", "/v1/runner/none", `{"idleTimeout":1}`, 404, "not found"},
		{"PATCH", r, `{}`, 400, "idleTimeout: missing"},
		{"GET", r + "/files?recursive=maybe", "", 400, "recursive"},
		{"GET", r + "/file", "", 400, "path: missing"},
		{"GET", r + "/file?path=x", "", 404, "no such file"},
		{"PUT", r + "/file?path=x&mode=9", "x", 400, "mode"},
		{"POST", r + "/files", `[{"path":"x"}]`, 400, "exactly one"},
		{"POST", r + "/files", `[{"path":"x","write":true,"mode":4096}]`, 400, "files[0].mode"},
		{"POST", "/v1/runners", `{"environment":"e","files":[{"path":"x"}]}`, 400, "files[0]"},
		{"POST", "/v1/run", `{"environment":"e","command":"x","files":[{}]}`, 400, "files[0]"},
		{"POST", r + "/executions", `{}`, 400, "argv"},
		{"POST", r + "/executions", `{"argv":["a"],"bogus":1}`, 400, `"unknown field \"bogus\""`},
		{"POST", r + "/executions", `{"argv":["a"],"limits":{"wall":1e309}}`, 400, `"limits.wall: got`},
		{"POST", r + "/executions", `{"argv":["\ud800"]}`, 400, "UTF-8"},
		{"POST", r + "/executions", `{"argv":["a"],"command":"b"}`, 400, "one of them"},
		{"POST", r + "/executions", `{"argv":["a"],"limits":{"wall":-1}}`, 400, "limits.wall"},
		{"POST", r + "/executions", `{"argv":["a"],"limits":{"memoryMB":100000}}`, 400, "limits.memoryMB"},
		{"GET", "/v1/execution/none", "", 404, "not found"},
		{"GET", "/v1/execution/none?wait=x", "", 400, "wait"},
		{"GET", "/v1/execution/none/attach", "", 404, "not found"},
		{"GET", "/v1/execution/" + x.ID + "/attach", "", 400, "websocket"},
		{"GET", "/v1/execution/" + x.ID + "/output?stream=x", "", 400, "stream"},
		{"POST", "/v1/execution/" + x.ID + "/signal", "{}", 400, "signal"},
		{"POST", "/v1/runners", `{"environment":"e","namespace":"a"}`, 400, "say ?namespace=a"},
		{"POST", "/v1/runners", `{"environment":"a~e"}`, 400, "say ?namespace=a"},
		{"POST", "/v1/runners?namespace=*", `{"environment":"e"}`, 400, "in one namespace"},
		{"POST", "/v1/run?namespace=b", `{"environment":"e","namespace":"a","command":"x"}`, 400, "say ?namespace=a"},
		{"POST", "/v1/runners?namespace=a", `{"environment":"e"}`, 404, `not found in namespace \"a\"`},
		{"PUT", "/v1/environment/x?namespace=b", `{"namespace":"a","image":"host"}`, 400, "namespace"},
		{"POST", "/v1/run", `{"environment":"e","command":"x","maxOutput":-1}`, 400, "maxOutput"},
		{"POST", "/v1/execution/" + x.ID + "/stdin", "x", 400, "no stdin"},
		{"POST", "/v1/execution/" + x.ID + "/resize", `{"rows":1,"cols":1}`, 400, "no terminal"},
		{"POST", "/v1/environments", "", 405, `"code":"invalid"`},
	} {
		res, body := w.raw(tc.method, tc.path, tc.body)
		require.Equal(t, tc.status, res.StatusCode, "%s %s: %s", tc.method, tc.path, body)
		require.Contains(t, body, tc.want, "%s %s", tc.method, tc.path)
	}
	stranger, err := client.New(w.server.URL, client.WithHTTPClient(w.server.Client()))
	require.NoError(t, err)
	_, err = stranger.Environments(t.Context())
	require.Equal(t, drover.Unauthorized, code(err))
	_, err = client.New("nowhere")
	require.Equal(t, drover.Invalid, code(err))
}

func TestTheDocumentDescribesTheServer(t *testing.T) {
	t.Parallel()
	face := native.New(native.Config{}, native.Deps{})
	want, err := json.MarshalIndent(face.Document((&fleet.Face{}).Operations()...), "", "  ")
	require.NoError(t, err)
	want = append(want, '\n')
	if *update {
		require.NoError(t, os.WriteFile("openapi.json", want, 0o600))
		return
	}
	have, err := os.ReadFile("openapi.json")
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(have), "run go test -update")
	w := newWorld(t)
	_, served := w.raw("GET", "/v1/openapi.json", "")
	require.JSONEq(t, string(want), served)
	var doc struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	require.NoError(t, json.Unmarshal(want, &doc))
	ids := map[string]bool{}
	for _, methods := range doc.Paths {
		for _, op := range methods {
			require.False(t, ids[op.OperationID], op.OperationID)
			ids[op.OperationID] = true
		}
	}
	fleets := 0
	for _, op := range (&fleet.Face{}).Operations() {
		methods, _, _ := strings.Cut(op.Pattern, " ")
		fleets += strings.Count(methods, ",") + 1
	}
	require.Len(t, ids, len(face.Routes())+fleets)
}
