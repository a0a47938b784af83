package link

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
)

// The wait between two attempts to connect doubles from the one to the other. It stays below the time for which the
// execution service keeps work on a node's runners (exec/runner).
const (
	leastWait = 100 * time.Millisecond
	mostWait  = 2 * time.Second
)

// DialConfig says how a node reaches control.
type DialConfig struct {
	Server   string      // host:port
	TLS      *tls.Config // nil: clear text
	Identity Identity    // its join token is what Token says
	// Token returns what the node shows to join. It is asked before each attempt, as it may be a new one each time.
	Token func(context.Context) (string, error)
	Clock clock.Clock
	Log   *slog.Logger
}

// Dialed is control as a node sees it that dials: an exchange.Controller, and the tunnel through which control reaches
// the node's workloads.
type Dialed struct {
	*Control
	cfg  DialConfig
	http *http.Client
	open chan struct{} // closed once the first tunnel stands
}

// Dial makes the node's side of the link. It connects when Run or a call does.
func Dial(cfg DialConfig) *Dialed {
	scheme := "http://"
	if cfg.TLS != nil {
		scheme = "https://"
	}
	hc := NewHTTPClient(cfg.TLS)
	return &Dialed{Control: NewControl(hc, scheme+cfg.Server, cfg.Identity), cfg: cfg, http: hc, open: make(chan struct{})}
}

// Register implements exchange.Controller. It waits until control can reach the node: from then on the node gets work,
// and is asked about it. Errors: those of the call, and ctx's.
func (d *Dialed) Register(ctx context.Context, n *drover.Node) (exchange.Registration, error) {
	select {
	case <-d.open:
		return d.Control.Register(ctx, n)
	case <-ctx.Done():
		return exchange.Registration{}, ctx.Err()
	}
}

// Run keeps a tunnel open through which control reaches the workloads, until ctx ends. Why there is none is logged,
// with what a person can do about it.
func (d *Dialed) Run(ctx context.Context, w exchange.Workloads) error {
	defer d.http.CloseIdleConnections()
	wait := leastWait
	opened := sync.OnceFunc(func() { close(d.open) })
	said := complaints{log: d.cfg.Log}
	for ctx.Err() == nil {
		token, err := d.cfg.Token(ctx)
		if err == nil {
			d.SetJoinToken(token)
			err = d.ServeWorkloads(ctx, w, func() { wait = leastWait; said = complaints{log: d.cfg.Log}; opened() })
		}
		if ctx.Err() != nil {
			break
		}
		said.complain(ctx, d.cfg.Clock.Now(), err, wait, func() string { return d.advice(ctx, err) })
		clock.Sleep(ctx, d.cfg.Clock, wait)
		wait = min(mostWait, 2*wait)
	}
	return nil // it ends with ctx, as it should
}

// complaints logs why there is no connection: at once when the reason is a new one, then once a minute.
type complaints struct {
	log  *slog.Logger
	last string
	at   time.Time
}

// complain logs the error: at level error if nothing improves before somebody does what the advice says.
func (c *complaints) complain(ctx context.Context, now time.Time, err error, again time.Duration, advice func() string) {
	if err.Error() == c.last && now.Sub(c.at) < time.Minute {
		c.log.Debug("the connection to control is down", "error", err, "again_ms", again.Milliseconds())
		return
	}
	c.last, c.at = err.Error(), now
	level, args := slog.LevelWarn, []any{"error", err, "again_ms", again.Milliseconds()}
	if code := drover.CodeOf(err); code == drover.Unauthorized || code == drover.Invalid {
		level = slog.LevelError
	} else if text := advice(); text != "" {
		level, args = slog.LevelError, append(args, "advice", text)
	}
	c.log.Log(ctx, level, "the connection to control is down", args...)
}

// advice says what a person can do about a connection that fails, as far as the error tells; else "".
func (d *Dialed) advice(ctx context.Context, err error) string {
	server, secure, text := d.cfg.Server, d.cfg.TLS != nil, err.Error()
	has := func(part string) bool { return strings.Contains(text, part) }
	switch {
	case !secure && d.speaksTLS(ctx):
		return "the server at " + server + " speaks TLS and this node does not: " +
			"give it tls { rpc = true, ca_file, cert_file and key_file }, with a certificate of the server's authority"
	case !secure:
		return ""
	case has("first record does not look like a TLS handshake"):
		return "the server at " + server + " does not speak TLS there: " +
			"set tls { rpc = true } at the server too, or remove it here; or the port is not its rpc port"
	case has("unknown authority"):
		return "the server's certificate is not of the authority in this node's tls.ca_file"
	case has("certificate is valid for"), has("doesn't contain any IP SANs"), has("not valid for any names"):
		return "client.servers names the server otherwise than its certificate does"
	case has("has expired or is not yet valid"):
		return "the server's certificate has run out, or one of the clocks is wrong"
	case has("remote error: tls: "):
		return "the server refuses this node's certificate: " +
			"tls.cert_file must be of the authority in the server's tls.ca_file, and not have run out"
	}
	return ""
}

// speaksTLS reports whether the server begins a handshake.
func (d *Dialed) speaksTLS(ctx context.Context) bool {
	dialer := tls.Dialer{
		NetDialer: &net.Dialer{Timeout: 2 * time.Second},
		Config:    &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}, // nothing is sent
	}
	ctx, cancel := context.WithTimeout(ctx, 4*time.Second)
	defer cancel()
	conn, err := dialer.DialContext(ctx, "tcp", d.cfg.Server)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil || strings.Contains(err.Error(), "remote error: tls: ")
}
