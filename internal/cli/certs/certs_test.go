package certs_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/cli/clitest"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/peer"
)

// load is what an agent makes of the files, with the name of the certificate's.
func load(t *testing.T, dir, ca, name string) *tls.Config {
	t.Helper()
	for _, key := range []string{name + "-key.pem", ca + "-key.pem"} {
		info, err := os.Stat(filepath.Join(dir, key))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), key)
	}
	own, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".pem"), filepath.Join(dir, name+"-key.pem"))
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(dir, ca+".pem"))
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(text))
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own}, RootCAs: pool, ClientCAs: pool,
		ClientAuth: tls.RequireAndVerifyClientCert,
	}
}

func port(t *testing.T, cfg *tls.Config) *peer.Port {
	t.Helper()
	in, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := peer.Split(in, peer.Config{
		Self: func() peer.Identity { return peer.Identity{Region: "global"} }, TLS: func() *tls.Config { return cfg },
		Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// What the commands make is what servers and nodes take. Servers speak as servers, nodes come in as nodes, and neither a node's
// certificate nor one of another region or authority opens the log.
func TestAgentsTakeWhatTheCommandsMake(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	api := clitest.Serve(t, nil)
	for _, args := range [][]string{
		{"ca", "create", "-name-constraint"},
		{"ca", "create", "-domain", "other"},
		{"cert", "create", "-server"},
		{"cert", "create", "-client"},
		{"cert", "create", "-server", "-region", "far"},
		{"cert", "create", "-server", "-domain", "other"},
		{"cert", "create", "-cli"},
	} {
		r := api.Run(append(append([]string{"tls"}, args...), "-dir", dir)...)
		require.Zero(t, r.Code, r.Err)
	}
	const ca = "nomad-agent-ca"
	server := load(t, dir, ca, "global-server-nomad")
	a, b := port(t, server), port(t, load(t, dir, ca, "global-server-nomad"))
	accepted := make(chan net.Conn, 1)
	go func() { // ends with the port
		if c, err := a.Listener(peer.Raft).Accept(); err == nil {
			accepted <- c
		}
	}()
	c, err := b.Dial(t.Context(), peer.Raft, a.Addr().String(), peer.Identity{})
	require.NoError(t, err)
	in := <-accepted
	_, err = in.Write([]byte("hello"))
	require.NoError(t, err)
	require.NoError(t, in.Close())
	text, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, "hello", string(text))
	require.NoError(t, c.Close())

	for name, of := range map[string]string{"global-client-nomad": ca, "far-server-nomad": ca, "global-server-other": "other-agent-ca"} {
		_, err := port(t, load(t, dir, of, name)).Dial(t.Context(), peer.Raft, a.Addr().String(), peer.Identity{})
		require.Error(t, err, name)
	}

	for _, name := range []string{"global-client-nomad", "global-cli-nomad"} { // they reach it by its address, and show what they have
		cfg := load(t, dir, ca, name)
		cfg.NextProtos = []string{"h2"}
		d := tls.Dialer{Config: cfg}
		node, err := d.DialContext(context.WithoutCancel(t.Context()), "tcp", a.Addr().String())
		require.NoError(t, err, name)
		in, err := a.Nodes().Accept()
		require.NoError(t, err, name)
		require.NoError(t, in.Close())
		require.NoError(t, node.Close())
	}
}
