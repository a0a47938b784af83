package server

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
)

// dials is what a node that dials control knows of it.
type dials struct {
	cfg    *config.Client
	secure bool // with TLS
}

// keepTunnel keeps the connection through which control reaches this node's workloads.
func (n *node) keepTunnel(ctx context.Context) error {
	const least, most = 100, 2000 // ms between attempts; less than work on its runners waits for it (exec/runner)
	wait := least
	opened := sync.OnceFunc(func() { close(n.open) })
	said := complaints{log: n.deps.Log}
	for ctx.Err() == nil {
		token, err := nodeToken(ctx, n.dials.cfg)
		if err == nil {
			n.remote.SetJoinToken(token)
			err = n.remote.ServeWorkloads(ctx, n.agent, func() { wait = least; said = complaints{log: n.deps.Log}; opened() })
		}
		if ctx.Err() != nil {
			break
		}
		said.complain(ctx, n.deps.Clock.Now(), err, wait, func() string { return n.dials.advice(ctx, err) })
		clock.Sleep(ctx, n.deps.Clock, msec(wait))
		wait = min(most, 2*wait)
	}
	return nil //nolint:nilerr // it ends with ctx, as it should
}

// complaints says why there is no connection: at once when the reason is a new one, then once a minute.
type complaints struct {
	log  *slog.Logger
	last string
	at   time.Time
}

// complain logs the error: as an error if the node will not be heard before somebody does what the advice says.
func (c *complaints) complain(ctx context.Context, now time.Time, err error, againMS int, advice func() string) {
	if err.Error() == c.last && now.Sub(c.at) < time.Minute {
		c.log.Debug("the connection to control is down", "error", err, "again_ms", againMS)
		return
	}
	c.last, c.at = err.Error(), now
	level, args := slog.LevelWarn, []any{"error", err, "again_ms", againMS}
	if code := drover.CodeOf(err); code == drover.Unauthorized || code == drover.Invalid {
		level = slog.LevelError
	} else if text := advice(); text != "" {
		level, args = slog.LevelError, append(args, "advice", text)
	}
	c.log.Log(ctx, level, "the connection to control is down", args...)
}

// advice says what a person can do about a connection that fails, as far as the error tells; else "".
func (d dials) advice(ctx context.Context, err error) string {
	server, text := d.cfg.ServerList()[0], err.Error()
	has := func(part string) bool { return strings.Contains(text, part) }
	switch {
	case !d.secure && d.speaksTLS(ctx):
		return "the server at " + server + " speaks TLS and this node does not: give it tls { rpc = true, ca_file, cert_file and key_file }, with a certificate of the server's authority"
	case !d.secure:
		return ""
	case has("first record does not look like a TLS handshake"):
		return "the server at " + server + " does not speak TLS there: set tls { rpc = true } at the server too, or remove it here; or the port is not its rpc port"
	case has("unknown authority"):
		return "the server's certificate is not of the authority in this node's tls.ca_file"
	case has("certificate is valid for"), has("doesn't contain any IP SANs"), has("not valid for any names"):
		return "client.servers names the server otherwise than its certificate does"
	case has("has expired or is not yet valid"):
		return "the server's certificate has run out, or one of the clocks is wrong"
	case has("remote error: tls: "):
		return "the server refuses this node's certificate: tls.cert_file must be of the authority in the server's tls.ca_file, and not have run out"
	}
	return ""
}

// speaksTLS reports whether the server begins a handshake.
func (d dials) speaksTLS(ctx context.Context) bool {
	dialer := tls.Dialer{
		NetDialer: &net.Dialer{Timeout: 2 * time.Second},
		Config:    &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}, // nothing is sent
	}
	ctx, cancel := context.WithTimeout(ctx, 4*time.Second)
	defer cancel()
	conn, err := dialer.DialContext(ctx, "tcp", d.cfg.ServerList()[0])
	if err == nil {
		_ = conn.Close()
	}
	return err == nil || strings.Contains(err.Error(), "remote error: tls: ")
}
