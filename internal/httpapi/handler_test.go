package httpapi

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type testFace []Route

func (f testFace) Routes() []Route { return f }
func (f testFace) WriteError(w http.ResponseWriter, _ *http.Request, err error) {
	w.WriteHeader(Status(err))
	_, _ = io.WriteString(w, Message(err))
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func testConfig() Config { return Config{Logger: quiet(), Clock: clock.Wall{}} }

func do(t *testing.T, h http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "127.0.0.1"
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestHandlerAnswersByRouteTable(t *testing.T) {
	t.Parallel()
	h := Handler(testConfig(), testFace{
		{Pattern: "GET /thing/{id}", Handle: func(w http.ResponseWriter, r *http.Request) error {
			return WriteJSON(w, r, http.StatusOK, map[string]string{"id": r.PathValue("id")})
		}},
		{Pattern: "PUT,POST /thing/{id}", Handle: func(http.ResponseWriter, *http.Request) error {
			return drover.Errorf(drover.Conflict, "taken")
		}},
		{Pattern: "GET /panic", Handle: func(http.ResponseWriter, *http.Request) error { panic("secret") }},
		{Pattern: "GET /plain", Handle: func(http.ResponseWriter, *http.Request) error { return errors.New("broken") }},
	})
	for _, c := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", "/thing/7", 200, `{"id":"7"}`},
		{"GET", "/thing/a%2Fb", 200, `{"id":"a/b"}`},
		{"HEAD", "/thing/7", 200, ""},
		{"PUT", "/thing/7", 409, "taken"},
		{"POST", "/thing/7", 409, "taken"},
		{"DELETE", "/thing/7", 405, "Invalid method"},
		{"GET", "/other", 404, "404 page not found\n"},
		{"GET", "/panic", 500, "internal error; the server's log has the details"},
		{"GET", "/plain", 500, "broken"},
	} {
		w := do(t, h, c.method, c.path, "")
		require.Equal(t, c.status, w.Code, "%s %s", c.method, c.path)
		if c.method != "HEAD" {
			require.Equal(t, c.body, w.Body.String(), "%s %s", c.method, c.path)
		}
	}
	require.Equal(t, "GET, PUT, POST", do(t, h, "DELETE", "/thing/7", "").Header().Get("Allow"))
}

func TestBodyFaultsAreNamed(t *testing.T) {
	t.Parallel()
	cfg := testConfig()
	cfg.MaxBody = 64
	h := Handler(cfg, testFace{
		{Pattern: "POST /job", Handle: func(w http.ResponseWriter, r *http.Request) error {
			var b struct {
				Job struct {
					Count  int
					Name   string
					Groups []struct{ Kill time.Duration }
				}
			}
			if err := DecodeJSON(r, &b); err != nil {
				return err
			}
			return WriteJSON(w, r, http.StatusOK, b)
		}},
		{Pattern: "POST /optional", Handle: func(_ http.ResponseWriter, r *http.Request) error {
			var b struct{ A int }
			return DecodeOptionalJSON(r, &b)
		}},
	})
	for _, c := range []struct {
		path, body string
		status     int
		says       string
	}{
		{"/job", `{"Job":{"Count":3,"Unknown":[]}}`, 200, ""},
		{"/job", ``, 400, "no body"},
		{"/job", `{"Job":{"Count":"3"}}`, 400, "Job.Count: got a JSON string, but a whole number that fits int is expected"},
		{"/job", `{"Job":{"Count":1.5}}`, 400, "Job.Count: got a JSON number 1.5"},
		{"/job", `{"Job":{"Count":99999999999999999999}}`, 400, "Job.Count"},
		{"/job", `{"Job":{"Groups":[{"Kill":"5s"},{"kill":7}]}}`, 200, `[{"Kill":5000000000},{"Kill":7}]`},
		{"/job", `{"Job":{"Groups":[{"Kill":"5 s"}]}}`, 400, `Job.Groups.Kill: "5 s" is no duration: ` +
			`write nanoseconds as a number, or a text such as "1m30s"`},
		{"/job", `{"Job":{"Groups":[{"Kill":"5s"}]}} {}`, 400, "behind its JSON value"},
		{"/job", `{"Job":{"Groups":[{"Kill":"5s"}],"Count":"3"}}`, 400, "Job.Count: got a JSON string"},
		{"/job", `{"Job":{"Groups":[{"Kill":[]}]}}`, 400, "Job.Groups.Kill: got a JSON array, but a number of nanoseconds, or a text"},
		{"/job", `{"Job":[]}`, 400, "Job: got a JSON array, but an object"},
		{"/job", `[1]`, 400, "the body is a JSON array, but an object is expected"},
		{"/job", `{"Job":`, 400, "ends too early"},
		{"/job", `{"Job"}`, 400, "malformed JSON at byte 7"},
		{"/job", `{} {}`, 400, "behind its JSON value"},
		{"/job", `{"Job":{"Name":"` + strings.Repeat("x", 100) + `"}}`, 413, "larger than 64 bytes"},
		{"/job", `{}` + strings.Repeat(" ", 100), 413, "larger than 64 bytes"},
		{"/optional", ``, 200, ""},
		{"/optional", `{"A":"x"}`, 400, "A: got"},
	} {
		w := do(t, h, "POST", c.path, c.body)
		require.Equal(t, c.status, w.Code, "%s: %s", c.body, w.Body)
		if c.says != "" {
			require.Contains(t, w.Body.String(), c.says)
		}
	}
}

func TestLongAnswersAreCompressed(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("drover ", 10_000)
	h := Handler(testConfig(), testFace{
		{Pattern: "GET /long", Handle: func(w http.ResponseWriter, _ *http.Request) error {
			for s := range strings.SplitAfterSeq(long, " ") {
				_, _ = io.WriteString(w, s)
			}
			return nil
		}},
		{Pattern: "GET /short", Handle: func(w http.ResponseWriter, r *http.Request) error {
			return WriteJSON(w, r, http.StatusCreated, "x")
		}},
		{Pattern: "GET /fails", Handle: func(http.ResponseWriter, *http.Request) error {
			return drover.Errorf(drover.NotFound, "%s", long)
		}},
	})
	w := do(t, h, "GET", "/long", "", "Accept-Encoding", "deflate, gzip;q=0.8")
	require.Equal(t, "gzip", w.Header().Get("Content-Encoding"))
	require.Less(t, w.Body.Len(), len(long)/10)
	z, err := gzip.NewReader(w.Body)
	require.NoError(t, err)
	got, err := io.ReadAll(z)
	require.NoError(t, err)
	require.Equal(t, long, string(got))

	require.Empty(t, do(t, h, "GET", "/long", "").Header().Get("Content-Encoding"))
	require.Empty(t, do(t, h, "GET", "/long", "", "Accept-Encoding", "gzip;q=0").Header().Get("Content-Encoding"))
	w = do(t, h, "GET", "/short", "", "Accept-Encoding", "gzip")
	require.Equal(t, http.StatusCreated, w.Code)
	require.Equal(t, `"x"`, w.Body.String())
	w = do(t, h, "GET", "/fails", "", "Accept-Encoding", "gzip")
	require.Equal(t, http.StatusNotFound, w.Code)
	require.Equal(t, long, w.Body.String())
}

// Half an answer must not look like a whole one.
func TestFailureAfterTheBeginCutsTheConnection(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", "gzip"} {
		srv := httptest.NewServer(Handler(testConfig(), testFace{{Pattern: "GET /", Handle: func(w http.ResponseWriter, _ *http.Request) error {
			_, _ = w.Write(bytes.Repeat([]byte("x"), 100<<10))
			return errors.New("disk on fire")
		}}}))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
		require.NoError(t, err)
		r.Header.Set("Accept-Encoding", mode)
		resp, err := srv.Client().Do(r)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			_ = resp.Body.Close()
		}
		require.Error(t, err, "encoding %q", mode)
		srv.Close()
	}
}

func TestTokensAndStreams(t *testing.T) {
	t.Parallel()
	cfg := testConfig()
	cfg.Resolver = OneToken("s3cret")
	cfg.MaxStreams = 1
	inside, leave := make(chan struct{}), make(chan struct{})
	h := Handler(cfg, testFace{
		{Pattern: "GET /closed", Handle: func(http.ResponseWriter, *http.Request) error { return nil }},
		{Pattern: "GET /open", Need: Nothing, Handle: func(http.ResponseWriter, *http.Request) error { return nil }},
		{Pattern: "GET /stream", Need: Nothing, Stream: true, Handle: func(http.ResponseWriter, *http.Request) error {
			inside <- struct{}{}
			<-leave
			return nil
		}},
	})
	require.Equal(t, 401, do(t, h, "GET", "/closed", "").Code)
	require.Equal(t, 403, do(t, h, "GET", "/closed", "", "X-Nomad-Token", "wrong").Code)
	require.Equal(t, 200, do(t, h, "GET", "/closed", "", "X-Nomad-Token", "s3cret").Code)
	require.Equal(t, 200, do(t, h, "GET", "/closed", "", "Authorization", "bearer s3cret").Code)
	require.Equal(t, 200, do(t, h, "GET", "/open", "").Code)

	done := make(chan int)
	go func() { done <- do(t, h, "GET", "/stream", "").Code }() // ends with leave
	<-inside
	require.Equal(t, 429, do(t, h, "GET", "/stream", "").Code)
	leave <- struct{}{}
	require.Equal(t, 200, <-done)
}

func TestServeEndsWaitingRequestsOnStop(t *testing.T) {
	t.Parallel()
	inside := make(chan struct{})
	h := Handler(testConfig(), testFace{{Pattern: "GET /wait", Handle: func(_ http.ResponseWriter, r *http.Request) error {
		close(inside)
		<-r.Context().Done()
		return r.Context().Err()
	}}})
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error)
	srv := &Server{Handler: h, Logger: quiet(), Clock: clock.Wall{}}
	go func() { served <- srv.Serve(ctx, ln) }() // ends with cancel
	type result struct {
		status int
		err    error
	}
	got := make(chan result)
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	go func() { // ends with the answer
		resp, err := (&http.Client{Transport: tr}).Get("http://" + ln.Addr().String() + "/wait") // ends with the server
		if err != nil {
			got <- result{0, err}
			return
		}
		_ = resp.Body.Close()
		got <- result{resp.StatusCode, nil}
	}()
	<-inside
	cancel()
	r := <-got
	require.NoError(t, r.err)
	require.Equal(t, http.StatusServiceUnavailable, r.status)
	require.NoError(t, <-served)
}

func TestStatusOfEveryCode(t *testing.T) {
	t.Parallel()
	for code := drover.Internal; code <= drover.NotImplemented; code++ {
		s := Status(drover.Errorf(code, "x"))
		require.GreaterOrEqual(t, s, 400, code)
		_, ok := statuses[code]
		require.True(t, ok, "%s has no status", code)
	}
	require.Equal(t, 405, Status(&StatusError{405, errors.New("x")}))
}

// A client of HEAD takes the next answer from the same connection: a stream must end for it with its head.
func TestAHeadOfAStreamEnds(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(Handler(testConfig(), testFace{
		{Pattern: "GET /events", Stream: true, Handle: func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("X-Index", "7")
			w.WriteHeader(http.StatusOK)
			<-r.Context().Done()
			return nil
		}},
		{Pattern: "GET /file", Stream: true, Handle: func(w http.ResponseWriter, r *http.Request) error {
			w.WriteHeader(http.StatusOK)
			<-r.Context().Done()
			return drover.Errorf(drover.Canceled, "reading the file: %w", context.Cause(r.Context()))
		}},
		{Pattern: "GET /missing", Stream: true, Handle: func(http.ResponseWriter, *http.Request) error {
			return drover.Errorf(drover.NotFound, "no such file")
		}},
	}))
	defer srv.Close()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	answers := bufio.NewReader(conn)
	head := &http.Request{Method: http.MethodHead}
	for path, status := range map[string]int{"/events": 200, "/file": 200, "/missing": 404} {
		for range 2 {
			_, err = fmt.Fprintf(conn, "HEAD %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", path)
			require.NoError(t, err)
			res, err := http.ReadResponse(answers, head)
			require.NoError(t, err, path)
			require.Equal(t, status, res.StatusCode, path)
		}
	}
}
