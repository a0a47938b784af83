package httpapi

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
)

// TestTLSOffersHTTP2: with TLS there was HTTP/1.1 alone, where the sixth open stream of a browser stops all of its pages. A client that
// asks for HTTP/2 has any number of streams on one connection; one that asks for HTTP/1.1, as websockets do, gets that.
func TestTLSOffersHTTP2(t *testing.T) {
	t.Parallel()
	held := make(chan struct{})
	h := Handler(testConfig(), testFace{
		{Pattern: "GET /stream", Need: Nothing, Where: Here, Stream: true, Handle: func(w http.ResponseWriter, r *http.Request) error {
			_, _ = io.WriteString(w, r.Proto+"\n")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-held:
			case <-r.Context().Done():
			}
			return nil
		}},
		{Pattern: "GET /now", Need: Nothing, Where: Here, Handle: func(w http.ResponseWriter, r *http.Request) error {
			_, err := io.WriteString(w, r.Proto)
			return err
		}},
		{Pattern: "GET /socket", Need: Nothing, Where: Here, Stream: true, Handle: func(w http.ResponseWriter, _ *http.Request) error {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return err
			}
			defer conn.Close()
			_, err = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello")
			return err
		}},
	})
	lent := httptest.NewTLSServer(nil) // for its certificate
	lent.Close()
	bare, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &Server{Handler: h, Logger: quiet(), Clock: clock.Wall{}, Grace: time.Minute}
	served := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { // ends with ctx
		served <- s.Serve(ctx, tls.NewListener(bare, &tls.Config{Certificates: lent.TLS.Certificates, NextProtos: Protocols}))
	}()
	trusts := x509.NewCertPool()
	trusts.AddCert(lent.Certificate())
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: trusts, ServerName: "example.com"}, ForceAttemptHTTP2: true, MaxConnsPerHost: 1,
	}
	defer transport.CloseIdleConnections()
	client, site := &http.Client{Transport: transport}, "https://"+bare.Addr().String()
	get := func(path string) (*http.Response, *bufio.Reader) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, site+path, http.NoBody)
		require.NoError(t, err)
		answer, err := client.Do(r)
		require.NoError(t, err)
		return answer, bufio.NewReader(answer.Body)
	}
	for range 10 { // on one connection
		answer, body := get("/stream")
		defer answer.Body.Close()
		line, err := body.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "HTTP/2.0\n", line)
	}
	answer, body := get("/now")
	said, err := io.ReadAll(body)
	require.NoError(t, err)
	require.Equal(t, "HTTP/2.0", string(said))
	require.NoError(t, answer.Body.Close())

	conn, err := tls.Dial("tcp", bare.Addr().String(), &tls.Config{
		RootCAs: trusts, ServerName: "example.com", NextProtos: []string{"http/1.1"},
	})
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET /socket HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	require.NoError(t, err)
	said, err = io.ReadAll(conn)
	require.NoError(t, err)
	require.Contains(t, string(said), "101 Switching Protocols")
	require.Contains(t, string(said), "\r\n\r\nhello")

	close(held)
	stop()
	require.NoError(t, <-served)
}

// TestRequestsOfOneAddressAreBoundedOverHTTP2: one connection carries many requests, which are counted as connections are otherwise.
func TestRequestsOfOneAddressAreBoundedOverHTTP2(t *testing.T) {
	t.Parallel()
	held, begun := make(chan struct{}), make(chan struct{}, 10)
	srv := httptest.NewUnstartedServer(LimitRequests(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		begun <- struct{}{}
		select {
		case <-held:
		case <-r.Context().Done():
		}
	}), 3))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	get := func(client *http.Client, ctx context.Context) *http.Response {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, http.NoBody)
		require.NoError(t, err)
		answer, err := client.Do(r)
		require.NoError(t, err)
		return answer
	}
	ctx, leave := context.WithCancel(t.Context())
	for range 3 {
		answer := get(srv.Client(), ctx)
		defer answer.Body.Close()
		require.Equal(t, 2, answer.ProtoMajor)
		require.Equal(t, http.StatusOK, answer.StatusCode)
		<-begun
	}
	refused := get(srv.Client(), t.Context())
	require.Equal(t, http.StatusTooManyRequests, refused.StatusCode)
	require.NoError(t, refused.Body.Close())

	old := &http.Transport{TLSClientConfig: srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone()}
	old.TLSClientConfig.NextProtos = []string{"http/1.1"}
	defer old.CloseIdleConnections()
	answer := get(&http.Client{Transport: old}, t.Context()) // of HTTP/1.1 the connections are counted
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.NoError(t, answer.Body.Close())

	leave() // who ends theirs may have others
	require.Eventually(t, func() bool {
		answer := get(srv.Client(), t.Context())
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	}, 10*time.Second, 10*time.Millisecond)
	close(held)
}
