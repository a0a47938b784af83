package client

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// answering returns a client of a server that answers as handle does.
func answering(t *testing.T, handle http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	c, err := New(server.URL, WithToken("secret"))
	require.NoError(t, err)
	return c
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "127.0.0.1:4646", "ftp://host", "http://", "://", "http://a b", "/v1"} {
		_, err := New(address)
		require.Equal(t, drover.Invalid, drover.CodeOf(err), address)
	}
	for address, want := range map[string]string{
		"http://h:1":         "http://h:1/v1/runner/a%2Fb?q=1",
		"https://h/":         "https://h/v1/runner/a%2Fb?q=1",
		"http://h/below/it/": "http://h/below/it/v1/runner/a%2Fb?q=1",
		"http://h/a%2Fb":     "http://h/a%2Fb/v1/runner/a%2Fb?q=1",
	} {
		c, err := New(address)
		require.NoError(t, err, address)
		require.Equal(t, want, c.url([]string{"runner", "a/b"}, url.Values{"q": {"1"}}), address)
	}
}

// Whatever an id is made of, the server gets it as it is.
func TestAnyIDArrivesAsItIs(t *testing.T) {
	t.Parallel()
	var got string
	c := answering(t, func(w http.ResponseWriter, r *http.Request) {
		got, _ = url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), "/v1/runner/"))
		_ = json.NewEncoder(w).Encode(execution.Runner{ID: got})
	})
	rapid.Check(t, func(rt *rapid.T) {
		id := rapid.StringMatching(`[ -~ü€/?#%&+]{1,12}`).Draw(rt, "id")
		r, err := c.Runner(t.Context(), id)
		require.NoError(rt, err)
		require.Equal(rt, id, got)
		require.Equal(rt, id, r.ID)
	})
}

func TestErrorsOfTheServer(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		status     int
		body, says string
		code       drover.Code
	}{
		{404, `{"code":"not_found","message":"no such runner"}`, "no such runner", drover.NotFound},
		{429, `{"code":"exhausted","message":"empty"}`, "empty", drover.Exhausted},
		{500, `{"code":"of tomorrow","message":"new"}`, "new", drover.Internal},
		{404, "404 page not found\n", "404 Not Found: 404 page not found", drover.NotFound},
		{400, "bad", "400 Bad Request: bad", drover.Invalid},
		{401, "", "401 Unauthorized: ", drover.Unauthorized},
		{403, "{}", "403 Forbidden: {}", drover.Forbidden},
		{410, "x", "410 Gone: x", drover.Gone},
		{429, "x", "429 Too Many Requests: x", drover.RateLimited},
		{502, "<html>", "502 Bad Gateway: <html>", drover.Unavailable},
		{503, "", "503", drover.Unavailable},
		{504, "", "504", drover.Unavailable},
		{418, "", "418", drover.Internal},
	} {
		c := answering(t, func(w http.ResponseWriter, r *http.Request) {
			require.Equal(t, "secret", r.Header.Get("X-Drover-Token"))
			w.WriteHeader(x.status)
			_, _ = io.WriteString(w, x.body)
		})
		for name, call := range map[string]func() error{
			"call":   func() error { return c.Release(t.Context(), "x") },
			"open":   func() error { _, err := c.Archive(t.Context(), "x", execution.FileRequest{}); return err },
			"send":   func() error { return c.WriteFile(t.Context(), "x", execution.FileChange{}, strings.NewReader("")) },
			"dial":   func() error { _, err := c.Attach(t.Context(), "x", execution.Offsets{}); return err },
			"events": func() error { _, err := c.Events(t.Context(), 0); return err },
		} {
			err := call()
			require.Equal(t, x.code, drover.CodeOf(err), "%s: %+v: %v", name, x, err)
			require.ErrorContains(t, err, x.says, name)
		}
	}
	c := answering(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "no JSON") })
	_, err := c.Runner(t.Context(), "x")
	require.Equal(t, drover.Internal, drover.CodeOf(err))
	c, err = New("http://127.0.0.1:1")
	require.NoError(t, err)
	require.Equal(t, drover.Unavailable, drover.CodeOf(c.Release(t.Context(), "x")), "nobody is there")
}

// A server may answer with the whole of a file that has no parts.
func TestAPartOfAFileIsThePart(t *testing.T) {
	t.Parallel()
	const all = "0123456789"
	for _, ranges := range []bool{true, false} {
		c := answering(t, func(w http.ResponseWriter, r *http.Request) {
			if !ranges {
				r.Header.Del("Range")
			}
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(all))
		})
		for want, part := range map[string]execution.FileRequest{
			all: {}, "234": {Offset: 2, Length: 3}, "01": {Length: 2}, "789": {Offset: 7}, "89": {Offset: 8, Length: 5}, "9": {Offset: 9},
		} {
			body, err := c.ReadFile(t.Context(), "r", part)
			require.NoError(t, err)
			got, err := io.ReadAll(body)
			require.NoError(t, err)
			require.Equal(t, want, string(got), "ranges %v: %+v", ranges, part)
			require.NoError(t, body.Close())
		}
	}
	c := answering(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "01") })
	body, err := c.ReadFile(t.Context(), "r", execution.FileRequest{Offset: 5})
	require.NoError(t, err)
	got, err := io.ReadAll(body)
	require.NoError(t, err)
	require.Empty(t, got, "there is nothing behind the end")
}

func TestPathsAreBytes(t *testing.T) {
	t.Parallel()
	require.Equal(t, "path=a+b%2F%C3%BC", pathQuery("a b/ü", false).Encode())
	require.Equal(t, "pathBase64=YQr_&privileged=true", pathQuery("a\n\xff", true).Encode())
	c := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `[{"path":"a"},{"path":"?","pathBase64":"/w=="}]`)
	})
	_, err := c.ListFiles(t.Context(), "r", execution.FileRequest{})
	require.Equal(t, drover.Internal, drover.CodeOf(err), "it is not base64 of URLs")
}

func TestEventsSkipHeartbeats(t *testing.T) {
	t.Parallel()
	c := answering(t, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, url.Values{"index": {"7"}, "namespace": {"*"}, "topic": {"Runner:e", "Execution:r"}}, r.URL.Query())
		_, _ = io.WriteString(w, `{}`+"\n"+`{"Index":8,"Events":[{"Topic":"Runner"}]}`+"\n{}\n"+`{"Error":"too slow"}`+"\n")
	})
	events, err := c.Events(t.Context(), 7, "Runner:e", "Execution:r")
	require.NoError(t, err)
	defer events.Close()
	got, err := events.Next()
	require.NoError(t, err)
	require.EqualValues(t, 8, got.Index)
	_, err = events.Next()
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	require.ErrorContains(t, err, "too slow")
	_, err = events.Next()
	require.Equal(t, drover.Unavailable, drover.CodeOf(err), "the stream broke off")
}

// A session counts the bytes that it passes on, so that one can attach again where it broke; what a newer server says is
// passed over.
func TestASessionCountsItsBytes(t *testing.T) {
	t.Parallel()
	said := make(chan string, 8)
	c := answering(t, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "stderr=3&stdout=5", r.URL.RawQuery)
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		for range 4 {
			kind, text, err := conn.Read(r.Context())
			if err != nil {
				return
			}
			said <- kind.String() + " " + string(text)
		}
		for _, m := range []string{
			`{"type":"started","execution":"x","pid":7}`, "\x01hello", "\x02oh", `{"type":"of tomorrow"}`, "\x09?", "\x01",
			`{"type":"refused","code":"invalid","message":"no"}`, `{"type":"skipped","stream":"stderr","offset":100}`, "\x02!",
			`{"type":"receipt","receipt":{"exitCode":3}}`,
		} {
			kind := websocket.MessageText
			if m[0] != '{' {
				kind = websocket.MessageBinary
			}
			_ = conn.Write(r.Context(), kind, []byte(m))
		}
		_, _, _ = conn.Read(r.Context()) // until the client has closed
	})
	s, err := c.Attach(t.Context(), "x", execution.Offsets{Stdout: 5, Stderr: 3})
	require.NoError(t, err)
	require.NoError(t, s.Write(t.Context(), []byte("in")))
	require.NoError(t, s.Resize(t.Context(), execution.WindowSize{Rows: 24, Cols: 80}))
	require.NoError(t, s.Signal(t.Context(), "SIGINT"))
	require.NoError(t, s.CloseStdin(t.Context()))
	for _, want := range []string{
		"MessageBinary in", `MessageText {"type":"resize","rows":24,"cols":80}`, `MessageText {"type":"signal","signal":"SIGINT"}`,
		`MessageText {"type":"close-stdin"}`,
	} {
		require.Equal(t, want, <-said)
	}
	for _, want := range []execution.Frame{
		{Started: true, Pid: 7},
		{Stream: execution.Stdout, Offset: 5, Data: []byte("hello")},
		{Stream: execution.Stderr, Offset: 3, Data: []byte("oh")},
		{Stream: execution.Stderr, Offset: 100, Skipped: true},
		{Stream: execution.Stderr, Offset: 100, Data: []byte("!")},
		{Receipt: &execution.Receipt{ExitCode: 3}},
	} {
		got, err := s.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	require.Equal(t, "x", s.ID())
	_, err = s.Next(t.Context())
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, s.Close())
}
