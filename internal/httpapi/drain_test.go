package httpapi

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// A client that sends all before it reads gets to know why it was refused, whatever was left of its body.
func TestRefusedBodiesAreReadOn(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(Handler(testConfig(), testFace{{
		Pattern: "PUT /full", MaxBody: -1,
		Handle: func(_ http.ResponseWriter, r *http.Request) error {
			_, _ = io.CopyN(io.Discard, r.Body, 100)
			return drover.Errorf(drover.Exhausted, "the disk is full")
		},
	}, {Pattern: "PUT /bounded", MaxBody: 1000, Handle: func(_ http.ResponseWriter, r *http.Request) error {
		_, err := io.Copy(io.Discard, r.Body)
		return drover.Errorf(drover.TooLarge, "%w", err)
	}}}))
	defer srv.Close()
	const size = 40 << 20
	for path, want := range map[string]string{"/full": "the disk is full", "/bounded": "larger than 1000 bytes"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(srv.URL, "http://"))
		require.NoError(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, "PUT "+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 41943040\r\n\r\n")
		require.NoError(t, err)
		n, err := io.Copy(conn, io.LimitReader(neverEnding{}, size))
		require.NoError(t, err)
		require.EqualValues(t, size, n)
		answer, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.True(t, bytes.Contains(answer, []byte(want)), string(answer))
		require.Equal(t, path == "/full", bytes.Contains(answer, []byte("Retry-After: 1\r\n")))
	}
}

// net/http reads on by itself only where it keeps the connection.
func TestRefusedBodiesAreReadOnBeforeAClose(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(Handler(testConfig(), testFace{{Pattern: "PUT /", Handle: func(http.ResponseWriter, *http.Request) error {
		return drover.Errorf(drover.Invalid, "no")
	}}}))
	defer srv.Close()
	for _, version := range []string{"HTTP/1.0", "HTTP/1.1"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(srv.URL, "http://"))
		require.NoError(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, "PUT / "+version+"\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 200000\r\n\r\n"+
			strings.Repeat("x", 200_000))
		require.NoError(t, err)
		answer, err := io.ReadAll(conn)
		require.NoError(t, err, "it is closed, not reset")
		require.Contains(t, string(answer), "400 Bad Request")
	}
}

type neverEnding struct{}

func (neverEnding) Read(p []byte) (int, error) { return len(p), nil }
