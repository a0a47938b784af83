package httpapi

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

func TestWhatIsCompressed(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("drover ", 400)
	h := Handler(testConfig(), testFace{
		{Pattern: "GET /typed/{type...}", Handle: func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Content-Type", r.PathValue("type"))
			_, _ = io.WriteString(w, long)
			return nil
		}},
		{Pattern: "GET /size/{n}", Handle: func(w http.ResponseWriter, r *http.Request) error {
			n, _ := UintParam(r, "n", 0)
			_, _ = io.WriteString(w, long[:n])
			return nil
		}},
		{Pattern: "GET /encoded", Handle: func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Encoding", "br")
			_, _ = io.WriteString(w, long)
			return nil
		}},
		{Pattern: "GET /none", Handle: func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(http.StatusNoContent)
			return nil
		}},
		{Pattern: "GET /stream", Stream: true, Handle: func(w http.ResponseWriter, _ *http.Request) error {
			_, _ = io.WriteString(w, long)
			return nil
		}},
		{Pattern: "GET /raw", Raw: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, long) }},
		{Pattern: "GET /fails", Handle: func(http.ResponseWriter, *http.Request) error {
			return drover.Errorf(drover.NotFound, "%s", long)
		}},
	})
	for _, c := range []struct{ method, path, accepts, encoding string }{
		{"GET", "/typed/application/json", "gzip", "gzip"},
		{"GET", "/typed/text/plain", "gzip", "gzip"},
		{"GET", "/typed/application/octet-stream", "gzip", ""},
		{"GET", "/typed/application/zip", "gzip", ""},
		{"GET", "/typed/image/png", "gzip", ""},
		{"GET", "/typed/text/plain", "", ""},
		{"GET", "/typed/text/plain", "identity", ""},
		{"GET", "/typed/text/plain", "br, zstd", ""},
		{"GET", "/typed/text/plain", "zstd, gzip", "gzip"},
		{"GET", "/typed/text/plain", "gzip;q=0", ""},
		{"GET", "/typed/text/plain", "gzip; q=0.5", "gzip"},
		{"HEAD", "/typed/text/plain", "gzip", ""},
		{"GET", "/size/x?n=2048", "gzip", "gzip"},
		{"GET", "/size/x?n=2047", "gzip", ""},
		{"GET", "/size/x?n=0", "gzip", ""},
		{"GET", "/encoded", "gzip", "br"},
		{"GET", "/none", "gzip", ""},
		{"GET", "/stream", "gzip", ""},
		{"GET", "/raw", "gzip", ""},
		{"GET", "/fails", "gzip", ""},
		{"POST", "/fails", "gzip", ""},
	} {
		w := do(t, h, c.method, c.path, "", "Accept-Encoding", c.accepts)
		require.Equal(t, c.encoding, w.Header().Get("Content-Encoding"), "%+v", c)
		require.Empty(t, w.Header().Get("No-Gzip-Compression"), "%+v", c)
		if !strings.HasPrefix(c.path, "/stream") && !strings.HasPrefix(c.path, "/raw") {
			require.Equal(t, "Accept-Encoding", w.Header().Get("Vary"), "%+v", c)
		}
	}
}

// What a handler flushes is sent at once, whether there is much of it or little, compressed or not.
func TestAFlushSendsWhatThereIs(t *testing.T) {
	t.Parallel()
	for _, accepts := range []string{"", "gzip"} {
		for _, stream := range []bool{false, true} {
			for _, size := range []int{1, 5000} {
				name := fmt.Sprintf("accepts %q, stream %v, %d bytes", accepts, stream, size)
				arrived := make(chan struct{})
				handle := func(w http.ResponseWriter, r *http.Request) error {
					_, _ = w.Write(bytes.Repeat([]byte("a"), size))
					if err := http.NewResponseController(w).Flush(); err != nil {
						return err
					}
					select {
					case <-arrived:
					case <-r.Context().Done():
					}
					_, _ = io.WriteString(w, "b")
					return nil
				}
				srv := httptest.NewServer(Handler(testConfig(), testFace{{Pattern: "GET /", Stream: stream, Handle: handle}}))
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
				require.NoError(t, err)
				r.Header.Set("Accept-Encoding", accepts)
				res, err := srv.Client().Do(r)
				require.NoError(t, err, name)
				var body io.Reader = res.Body
				if res.Header.Get("Content-Encoding") == "gzip" {
					require.False(t, stream, name)
					body, err = gzip.NewReader(body)
					require.NoError(t, err, name)
				}
				_, err = io.ReadFull(body, make([]byte, size))
				require.NoError(t, err, name)
				close(arrived)
				rest, err := io.ReadAll(body)
				require.NoError(t, err, name)
				require.Equal(t, "b", string(rest), name)
				_ = res.Body.Close()
				srv.Close()
			}
		}
	}
}

// HTTP/1.0 has no chunks: only the compressed stream itself can tell that it was cut. gzhttp ends it even when the handler
// panics, but the end stays in net/http's buffer, whatever was in that before.
func TestACutAnswerIsNoWholeGzipStream(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(Handler(testConfig(), testFace{{Pattern: "GET /{n}", Handle: func(w http.ResponseWriter, r *http.Request) error {
		_, _ = w.Write(bytes.Repeat([]byte("x"), 100<<10))
		if err := http.NewResponseController(w).Flush(); err != nil {
			return err
		}
		n, _ := strconv.Atoi(r.PathValue("n"))
		tail := make([]byte, n)
		_, _ = rand.NewChaCha8([32]byte{}).Read(tail)
		_, _ = w.Write(tail)
		return errors.New("disk on fire")
	}}}))
	defer srv.Close()
	for n := 2020; n < 2060; n++ {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		require.NoError(t, err)
		_, err = fmt.Fprintf(conn, "GET /%d HTTP/1.0\r\nHost: 127.0.0.1\r\nAccept-Encoding: gzip\r\n\r\n", n)
		require.NoError(t, err)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.Equal(t, "gzip", res.Header.Get("Content-Encoding"))
		z, err := gzip.NewReader(res.Body)
		require.NoError(t, err)
		got, err := io.ReadAll(z)
		require.Error(t, err, "a tail of %d bytes", n)
		require.GreaterOrEqual(t, len(got), 100<<10, "what was flushed has come")
		_ = res.Body.Close()
		_ = conn.Close()
	}
}
