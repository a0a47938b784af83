package link

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
)

// newcomer is control that has never heard of the node: its token alone counts.
type newcomer struct{ *world }

func (newcomer) Authenticate(context.Context, string, string) error {
	return drover.Errorf(drover.NotFound, "register first")
}

// A node keeps trying until control takes it, and registers only once control can reach it.
func TestANodeDialsUntilItIsTaken(t *testing.T) {
	w := &world{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	nodes := NewNodes()
	srv := &http.Server{Handler: Handler(w, newcomer{w}, nodes), Protocols: &protocols}
	go func() { _ = srv.Serve(l) }() // ends with Close
	defer srv.Close()

	var asked atomic.Int32
	d := Dial(DialConfig{
		Servers: []string{l.Addr().String()}, Identity: Identity{NodeID: "n1", Secret: "s-n1"}, Clock: clock.Wall{},
		Log: slog.New(slog.DiscardHandler),
		Tokens: func(context.Context, string) (exchange.Tokens, error) {
			switch asked.Add(1) {
			case 1:
				return exchange.Tokens{}, errors.New("no file")
			case 2:
				return exchange.Tokens{Join: "wrong"}, nil
			}
			return exchange.Tokens{Join: "join"}, nil
		},
	})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = d.Register(gone, &drover.Node{ID: "n1"})
	require.ErrorIs(t, err, context.Canceled, "there is no tunnel yet")

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx, w) }() // ends with stop
	reg, err := d.Register(t.Context(), &drover.Node{ID: "n1", SecretID: "s-n1"})
	require.NoError(t, err)
	require.Equal(t, uint64(7), reg.Index)
	require.EqualValues(t, 3, asked.Load(), "the token is asked for before each attempt")
	stop()
	require.NoError(t, <-ended)
}

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
	none := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, errors.New("none") }
	secure, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: none})
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
		{secure, false, "link: unexpected EOF", "speaks TLS and this node does not: give it the join token that has @sha256:"},
		{plain, false, "link: unexpected EOF", ""},
		{plain, true, "link: tls: first record does not look like a TLS handshake", "does not speak TLS there"},
		{secure, true, "link: tls: failed to verify certificate: x509: certificate signed by unknown authority", "tls.ca_file"},
		{secure, true, "link: tls: failed to verify certificate: x509: certificate has expired or is not yet valid", "has run out"},
		{secure, true, "link: tls: failed to verify certificate: x509: certificate is valid for 10.0.0.1, not 127.0.0.1", "client.servers"},
		{secure, true, "link: remote error: tls: unknown certificate authority", "refuses this node's certificate"},
		{secure, true, "link: dial tcp 127.0.0.1:1: connect: connection refused", ""},
	} {
		cfg := DialConfig{Servers: []string{c.at.Addr().String()}, Clock: clock.Wall{}}
		if c.secure {
			cfg.TLS = func() *tls.Config { return &tls.Config{MinVersion: tls.VersionTLS12} }
		}
		d := Dial(cfg)
		got := d.advice(t.Context(), d.list[0], drover.Errorf(drover.Unavailable, "%s", c.err))
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
		c.complain(context.Background(), now, err, 100*time.Millisecond, func() string { return advice })
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
