package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/config"
)

func TestAdviceAboutTLS(t *testing.T) {
	t.Parallel()
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer plain.Close()
	go func() { // ends with the listener
		for {
			c, err := plain.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	secure, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, errors.New("none") }}) // a test
	require.NoError(t, err)
	defer secure.Close()
	go func() { // as above
		for {
			c, err := secure.Accept()
			if err != nil {
				return
			}
			_ = c.(*tls.Conn).Handshake() // it is
			_ = c.Close()
		}
	}()
	for _, c := range []struct {
		at     net.Listener
		secure bool
		err    string
		want   string
	}{
		{secure, false, "link: unexpected EOF", "speaks TLS and this node does not: give it tls { rpc = true"},
		{plain, false, "link: unexpected EOF", ""},
		{plain, true, "link: tls: first record does not look like a TLS handshake", "does not speak TLS there"},
		{secure, true, "link: tls: failed to verify certificate: x509: certificate signed by unknown authority", "tls.ca_file"},
		{secure, true, "link: tls: failed to verify certificate: x509: certificate is valid for 10.0.0.1, not 127.0.0.1", "client.servers"},
		{secure, true, "link: remote error: tls: unknown certificate authority", "refuses this node's certificate"},
		{secure, true, "link: dial tcp 127.0.0.1:1: connect: connection refused", ""},
	} {
		d := dials{&config.Client{Servers: []string{c.at.Addr().String()}}, c.secure}
		got := d.advice(t.Context(), drover.Errorf(drover.Unavailable, "%s", c.err))
		if c.want == "" {
			require.Empty(t, got, c.err)
			continue
		}
		require.Contains(t, got, c.want)
	}
}

// A refusal is an error in the log, what may pass a warning; each once a minute.
func TestComplaintsAreHeard(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	c := complaints{log: slog.New(slog.NewTextHandler(&log, nil))}
	now := time.Unix(1e9, 0)
	complain := func(err error, advice string) {
		c.complain(context.Background(), now, err, 100, func() string { return advice })
	}
	down := drover.Errorf(drover.Unavailable, "link: connection refused")
	for range 3 {
		complain(down, "")
	}
	require.Equal(t, 1, strings.Count(log.String(), "level=WARN"), log.String())
	complain(drover.Errorf(drover.Unauthorized, "wrong join token"), "")
	complain(drover.Errorf(drover.Unavailable, "link: unexpected EOF"), "the server speaks TLS")
	require.Equal(t, 2, strings.Count(log.String(), "level=ERROR"), log.String())
	require.Contains(t, log.String(), `advice="the server speaks TLS"`)
	complain(down, "")
	now = now.Add(time.Minute)
	complain(down, "")
	require.Equal(t, 3, strings.Count(log.String(), "level=WARN"), log.String())
}

func TestUsableAddress(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]string{"[::]:4646": "127.0.0.1:4646", "0.0.0.0:4646": "127.0.0.1:4646", "10.0.0.1:4646": "10.0.0.1:4646", "[::1]:4646": "[::1]:4646"} {
		require.Equal(t, want, usable(at, "127.0.0.1"))
	}
}

// A server makes its token once and keeps it where nobody else reads it.
func TestJoinTokenIsMadeOnce(t *testing.T) {
	t.Parallel()
	a := &Agent{cfg: config.Default(), dataDir: t.TempDir()}
	first, err := a.joinToken()
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(first), 26)
	info, err := os.Stat(filepath.Join(a.dataDir, "join-token"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	again, err := a.joinToken()
	require.NoError(t, err)
	require.Equal(t, first, again)

	require.NoError(t, os.WriteFile(filepath.Join(a.dataDir, "join-token"), nil, 0o600))
	_, err = a.joinToken()
	require.ErrorContains(t, err, "remove it to have one made")

	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("from a file\n"), 0o600))
	a.cfg.Server.JoinTokenFile = file
	token, err := a.joinToken()
	require.NoError(t, err)
	require.Equal(t, "from a file", token)
	a.cfg.Server.JoinTokenFile = file + ".not"
	_, err = a.joinToken()
	require.ErrorContains(t, err, "server.join_token_file: ")
	a.cfg.Server.JoinToken = "configured"
	token, err = a.joinToken()
	require.NoError(t, err)
	require.Equal(t, "configured", token)
}
