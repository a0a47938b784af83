package live

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/clitest"
	"github.com/drover-project/drover/internal/config"
)

// certificates makes an authority and a server's certificate of it.
func certificates(t *testing.T) (files map[string][]byte, trusts *x509.CertPool) {
	t.Helper()
	dir, files := t.TempDir(), map[string][]byte{}
	api := clitest.Serve(t, nil)
	for _, args := range [][]string{{"ca", "create"}, {"cert", "create", "-server"}} {
		r := api.Run(append(append([]string{"tls"}, args...), "-dir", dir)...)
		require.Zero(t, r.Code, r.Err)
	}
	for name, file := range map[string]string{
		"ca": "nomad-agent-ca.pem", "cert": "global-server-nomad.pem", "key": "global-server-nomad-key.pem",
	} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		files[name] = text
	}
	trusts = x509.NewCertPool()
	require.True(t, trusts.AppendCertsFromPEM(files["ca"]))
	return files, trusts
}

// seen is the certificate that a listener shows, checked with the pool.
func seen(t *testing.T, address string, trusts *x509.CertPool) error {
	t.Helper()
	c, err := (&tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: trusts}}).DialContext(t.Context(), "tcp", address)
	if err == nil {
		require.NoError(t, c.Close())
	}
	return err
}

// What can be taken up is, all together; a wrong file leaves all as it was.
func TestReload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(files map[string][]byte) {
		for name, data := range files {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
		}
	}
	first, trustsFirst := certificates(t)
	second, trustsSecond := certificates(t)
	put(first)
	cfg := config.Agent{LogLevel: "info", TLS: &config.TLS{
		HTTP: new(true), RPC: new(true),
		CAFile: filepath.Join(dir, "ca"), CertFile: filepath.Join(dir, "cert"), KeyFile: filepath.Join(dir, "key"),
	}}
	level := &slog.LevelVar{}
	s, err := New(&cfg, func() (*config.Agent, error) { next := cfg; return &next, nil }, level)
	require.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv := httptest.NewUnstartedServer(s.Headers(http.NotFoundHandler()))
	require.NoError(t, srv.Listener.Close())
	srv.Listener = tls.NewListener(ln, s.HTTP.Listening())
	srv.Start()
	t.Cleanup(srv.Close)
	address := ln.Addr().String()
	require.NoError(t, seen(t, address, trustsFirst))
	require.Error(t, seen(t, address, trustsSecond))

	cfg.LogLevel, cfg.Headers = "debug", map[string]string{"X-Team": "a"}
	put(map[string][]byte{"cert": second["cert"]}) // without its key
	require.Equal(t, drover.Invalid, drover.CodeOf(s.Reload()))
	require.NoError(t, seen(t, address, trustsFirst))
	require.Equal(t, slog.LevelInfo, level.Level())
	require.Empty(t, header(s))
	put(map[string][]byte{"cert": first["cert"], "ca": []byte("nothing")})
	require.ErrorContains(t, s.Reload(), "holds no certificate")
	require.NoError(t, seen(t, address, trustsFirst))

	before := s.RPC.Config()
	put(second)
	require.NoError(t, s.Reload())
	require.NoError(t, seen(t, address, trustsSecond))
	require.Error(t, seen(t, address, trustsFirst))
	require.NotSame(t, before, s.RPC.Config())
	require.Equal(t, slog.LevelDebug, level.Level())
	require.Equal(t, "a", header(s))

	cfg.TLS = &config.TLS{}
	require.ErrorContains(t, s.Reload(), "needs a restart")
	cfg.TLS, cfg.LogLevel = nil, "loud"
	require.ErrorContains(t, s.Reload(), "log_level")
}

func header(s *Settings) string {
	w := httptest.NewRecorder()
	s.Headers(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	return w.Header().Get("X-Team")
}

func TestNothingToReload(t *testing.T) {
	t.Parallel()
	s, err := New(&config.Agent{}, nil, nil)
	require.NoError(t, err)
	require.Nil(t, s.HTTP.Config())
	require.Nil(t, s.HTTP.Listening())
	require.Nil(t, s.RPC.Source())
	require.Equal(t, drover.NotImplemented, drover.CodeOf(s.Reload()))
	s, err = New(&config.Agent{TLS: &config.TLS{CertFile: "none"}}, nil, nil)
	require.NoError(t, err, "it is switched off")
	require.Nil(t, s.HTTP)
	_, err = New(&config.Agent{TLS: &config.TLS{RPC: new(true), CertFile: "none"}}, nil, nil)
	require.ErrorContains(t, err, "tls.cert_file")
}

// Certificates that a server makes itself are taken up when it renewed them, and stay when the configuration is read again.
func TestTheServersOwnCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(files map[string][]byte) {
		for name, data := range files {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
		}
	}
	first, _ := certificates(t)
	second, _ := certificates(t)
	cfg := config.Agent{LogLevel: "info", Server: &config.Server{Enabled: new(true)}, TLS: &config.TLS{Auto: new(true)}}
	s, err := New(&cfg, func() (*config.Agent, error) { next := cfg; return &next, nil }, nil)
	require.NoError(t, err)
	own := &config.TLS{
		Auto: new(true), RPC: new(true), HTTP: new(false),
		CAFile: filepath.Join(dir, "ca"), CertFile: filepath.Join(dir, "cert"), KeyFile: filepath.Join(dir, "key"),
	}
	require.Error(t, s.Own(own), "there are no files")
	put(first)
	require.NoError(t, s.Own(own))
	require.Nil(t, s.HTTP)
	before := s.RPC.Config()
	put(map[string][]byte{"cert": second["cert"]})
	require.ErrorContains(t, s.TakeOwn(), "tls.cert_file")
	require.Same(t, before, s.RPC.Config())
	put(second)
	require.NoError(t, s.TakeOwn())
	require.NotEqual(t, before.Certificates[0].Certificate, s.RPC.Config().Certificates[0].Certificate)
	require.NoError(t, s.Reload())
	require.NotNil(t, s.RPC.Config())
	cfg.TLS = &config.TLS{}
	require.ErrorContains(t, s.Reload(), "tls: other certificates than the server's own need a restart")
}
