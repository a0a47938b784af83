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
	"github.com/drover-project/drover/internal/wake"
)

// The wait between two attempts to connect doubles from the one to the other. It stays below the time for which the
// execution service keeps work on a node's runners (exec/runner).
const (
	leastWait = 100 * time.Millisecond
	mostWait  = 2 * time.Second
)

// DialConfig says how a node reaches control.
type DialConfig struct {
	Servers  []string           // host:port of each server that is configured
	Kept     string             // file that remembers which servers there are beside them; "" remembers none
	TLS      func() *tls.Config // what the node shows and whom it trusts, asked for each connection; nil is clear text
	Identity Identity           // its join token is what Tokens says
	// Names are those of which a server's certificate has one, if it does not have that of the address.
	Names []string
	// Tokens returns what the node shows to the server to join. It is asked before each attempt, as they may be new ones each time.
	Tokens func(ctx context.Context, server string) (exchange.Tokens, error)
	Faces  http.Handler // what control asks the node's agent itself; may be nil
	Known  bool         // the node registers elsewhere, so that no server is preferred to another
	Clock  clock.Clock
	Log    *slog.Logger
}

// Dialed is control as a node sees it that dials: an exchange.Controller, and the tunnels through which control reaches
// the node's workloads. There is a tunnel to each server, and one of them, the main one, is asked what the node has to do.
type Dialed struct {
	cfg     DialConfig
	open    chan struct{}  // closed once the first tunnel stands
	changed wake.Broadcast // the list, or which tunnels stand
	doubt   wake.Signal    // whether the main server answers, see doubted

	mu     sync.Mutex      // guards what follows
	list   []*server       // in the order of this node's preference
	main   *server         // nil until the first call
	moved  context.Context // ends when calls have to be made otherwise
	move   context.CancelFunc
	opened bool          // open is closed
	begun  time.Time     // when Run began
	known  time.Time     // when the node was registered first; zero until then
	doubts bool          // another server says that the main one does not answer
	pace   time.Duration // between pings of the main server
}

// Dial makes the node's side of the link. It connects when Run or a call does.
func Dial(cfg DialConfig) *Dialed {
	d := &Dialed{cfg: cfg, open: make(chan struct{}), doubt: wake.NewSignal(), pace: firstPace}
	d.moved, d.move = context.WithCancel(context.Background()) //nolint:forbidigo // until the first move
	known := addresses(cfg.Servers)
	for _, s := range d.kept() {
		if !has(known, s) {
			known = append(known, s)
		}
	}
	d.put(known)
	return d
}

// Run keeps tunnels open through which control reaches the workloads, until ctx ends. Why there is none is logged, with what a
// person can do about it.
func (d *Dialed) Run(ctx context.Context, w exchange.Workloads) error {
	var keepers sync.WaitGroup
	defer keepers.Wait()
	keepers.Go(func() { d.watch(ctx) }) // ends with ctx
	d.starts()
	workloads := workloadsHandler(w)
	for ctx.Err() == nil {
		changed := d.changed.C()
		for _, s := range d.begin() {
			keepers.Go(func() { d.keep(ctx, workloads, s) }) // ends with ctx, or when the server is forgotten
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return nil // it ends with ctx, as it should
}

// keep keeps the tunnel to one server open.
func (d *Dialed) keep(ctx context.Context, workloads http.Handler, s *server) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer s.line.close()
	unwatch := context.AfterFunc(s.life, cancel) //nolint:contextcheck // it watches the server
	defer unwatch()
	wait := leastWait
	said := complaints{log: d.cfg.Log.With("server", s.address)}
	d.awaitTurn(ctx, s)
	for ctx.Err() == nil {
		tokens, err := d.cfg.Tokens(ctx, s.address)
		if err == nil {
			s.control.SetTokens(tokens)
			err = s.control.serve(ctx, workloads, func(serverID string) {
				wait, said.last = leastWait, ""
				d.stands(s, serverID)
			})
		}
		d.fell(s)
		if ctx.Err() != nil {
			return
		}
		said.complain(ctx, d.cfg.Clock.Now(), err, wait, func() string { return d.advice(ctx, s, err) })
		clock.Sleep(ctx, d.cfg.Clock, wait)
		wait = min(mostWait, 2*wait)
		d.awaitNeed(ctx, s)
	}
}

// complaints logs why there is no connection: at once when the reason is a new one, then once a minute.
type complaints struct {
	log  *slog.Logger
	last string
	at   time.Time
}

// complain logs the error, at level error if nothing improves before somebody follows the advice.
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
func (d *Dialed) advice(ctx context.Context, s *server, err error) string {
	at, secure, text := s.address, d.cfg.TLS != nil, err.Error()
	has := func(part string) bool { return strings.Contains(text, part) }
	switch {
	case !secure && speaksTLS(ctx, at):
		return "the server at " + at + " speaks TLS and this node does not: " +
			"give it the join token that has @sha256:… at its end, from the file join-token in the server's data_dir, and start it again; " +
			"or, if there is none, tls { rpc = true, ca_file, cert_file and key_file }, with a certificate of the server's authority"
	case !secure:
		return ""
	case has("first record does not look like a TLS handshake"):
		return "the server at " + at + " does not speak TLS there: " +
			"set tls { rpc = true } at the server too, or remove it here; or the port is not its rpc port"
	case has("unknown authority"):
		return "the server's certificate is not of the authority in this node's tls.ca_file, or not of the one that its join token names: " +
			"was the server's data_dir made anew?"
	case has("certificate is valid for"), has("doesn't contain any IP SANs"), has("not valid for any names"):
		return "client.servers names the server otherwise than its certificate does"
	case has("has expired or is not yet valid"):
		return "the server's certificate has run out, or one of the clocks is wrong: this machine's says " +
			d.cfg.Clock.Now().UTC().Format(time.RFC3339)
	case has("remote error: tls: "):
		return "the server refuses this node's certificate: " +
			"tls.cert_file must be of the authority in the server's tls.ca_file, not have run out, and not be revoked; " +
			"one that the node got for its join token is asked for anew when client/tls is removed from its data_dir"
	}
	return ""
}

// speaksTLS reports whether the server at the address begins a handshake.
func speaksTLS(ctx context.Context, address string) bool {
	dialer := tls.Dialer{
		NetDialer: &net.Dialer{Timeout: 2 * time.Second},
		Config:    &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}, // nothing is sent
	}
	ctx, cancel := context.WithTimeout(ctx, 4*time.Second)
	defer cancel()
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil || strings.Contains(err.Error(), "remote error: tls: ")
}
