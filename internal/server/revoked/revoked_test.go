package revoked

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// state is what is revoked.
type state struct {
	mu      sync.Mutex
	list    map[string]*cluster.Revocation // guarded by mu
	changed chan struct{}                  // guarded by mu
	refused chan string
}

func (s *state) find(id string) *cluster.Revocation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list[id]
}

func (s *state) changes() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *state) set(id string, revoked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.list, id); revoked {
		s.list[id] = &cluster.Revocation{ID: id}
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// certificate makes one that is its own authority.
func certificate(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if name == "server" {
		template.DNSNames, template.ExtKeyUsage = []string{name}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// world is a server behind a guard.
type world struct {
	*state
	address string
	server  tls.Certificate
}

// serve serves over TLS, or in clear text.
func serve(t *testing.T, secure bool) *world {
	t.Helper()
	w := &world{state: &state{list: map[string]*cluster.Revocation{}, changed: make(chan struct{}), refused: make(chan string, 16)}}
	w.server = certificate(t, "server")
	g := New(Deps{
		Find: w.find, Changed: w.changes, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
		Refused: func(_ net.Addr, r *cluster.Revocation) { w.refused <- r.ID },
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w.address, ln = ln.Addr().String(), g.Listen(ln)
	if secure {
		cfg := &tls.Config{Certificates: []tls.Certificate{w.server}, ClientAuth: tls.RequestClientCert}
		ln = tls.NewListener(ln, g.Config(&tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return cfg, nil }}))
	}
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("Node")) })
	srv := &http.Server{
		Handler:     g.Handler(func(r *http.Request) string { return r.Header.Get("Node") }, echo),
		ConnContext: ConnContext, ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = srv.Serve(ln) })
	wg.Go(func() { _ = g.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		_ = srv.Close()
		wg.Wait()
	})
	return w
}

// dial opens a connection and asks once, so that it is known that it was let in.
func (w *world) dial(t *testing.T, node string, shows *tls.Certificate) (net.Conn, error) {
	t.Helper()
	c, err := net.Dial("tcp", w.address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	if shows != nil {
		roots := x509.NewCertPool()
		roots.AddCert(w.server.Leaf)
		c = tls.Client(c, &tls.Config{RootCAs: roots, ServerName: "server", Certificates: []tls.Certificate{*shows}})
	}
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nNode: "+node+"\r\n\r\n"); err != nil {
		return c, err
	}
	_, err = c.Read(make([]byte, 4096))
	return c, err
}

// closed waits for the other end to close the connection.
func closed(t *testing.T, c net.Conn) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(20*time.Second)))
	_, err := io.ReadAll(c)
	if timeout, ok := err.(net.Error); ok { //nolint:errorlint // as it comes from the connection
		require.False(t, timeout.Timeout(), "the connection stays open")
	}
}

// TestWhoIsRevokedIsOut: whatever names the certificate, its connections are closed, new ones refused, and others stay; once it is taken
// back it is let in again.
func TestWhoIsRevokedIsOut(t *testing.T) {
	t.Parallel()
	for i, kind := range []string{"node", "sha256", "serial"} {
		w := serve(t, true)
		bad, good := certificate(t, "bad"), certificate(t, "good")
		c, err := w.dial(t, "", &bad)
		require.NoError(t, err)
		other, err := w.dial(t, "", &good)
		require.NoError(t, err)
		id := cluster.RevokedBy(bad.Leaf)[i]
		require.Contains(t, id, kind+":")
		w.set(id, true)
		closed(t, c)
		require.Equal(t, id, <-w.refused)
		_, err = w.dial(t, "", &bad)
		require.Error(t, err)
		require.Equal(t, id, <-w.refused)
		_, err = io.WriteString(other, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		require.NoError(t, err)
		_, err = other.Read(make([]byte, 4096))
		require.NoError(t, err, "others are not concerned")
		w.set(id, false)
		_, err = w.dial(t, "", &bad)
		require.NoError(t, err)
	}
}

// TestCallsSayWhichNode: the connections of a node that is revoked are closed, whatever certificate it showed, also in clear text.
func TestCallsSayWhichNode(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{true, false} {
		w := serve(t, secure)
		var shows *tls.Certificate
		if secure {
			shared := certificate(t, "client.global.nomad")
			shows = &shared
		}
		c, err := w.dial(t, "n1", shows)
		require.NoError(t, err)
		other, err := w.dial(t, "n2", shows)
		require.NoError(t, err)
		w.set("node:n1", true)
		closed(t, c)
		require.Equal(t, "node:n1", <-w.refused)
		_, err = io.WriteString(other, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		require.NoError(t, err)
		_, err = other.Read(make([]byte, 4096))
		require.NoError(t, err)
	}
}

// TestDialledConnections of servers are closed, too.
func TestDialledConnections(t *testing.T) {
	t.Parallel()
	s := &state{list: map[string]*cluster.Revocation{}, changed: make(chan struct{}), refused: make(chan string, 16)}
	g := New(Deps{Find: s.find, Changed: s.changes, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler)})
	ours, theirs := net.Pipe()
	defer func() { _ = theirs.Close() }()
	c, server := g.Wrap(ours), certificate(t, "server")
	require.NoError(t, g.Shown(c, tls.ConnectionState{}))
	require.NoError(t, g.Shown(c, tls.ConnectionState{PeerCertificates: []*x509.Certificate{server.Leaf}}))
	s.set(cluster.RevokedBy(server.Leaf)[0], true)
	g.closeRevoked()
	require.Empty(t, g.open, "connections that were closed are forgotten")
	_, err := c.Write([]byte("x"))
	require.ErrorIs(t, err, io.ErrClosedPipe)
	require.Error(t, g.Shown(c, tls.ConnectionState{PeerCertificates: []*x509.Certificate{server.Leaf}}))
	require.Nil(t, g.Config(nil))
}
