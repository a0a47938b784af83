package check

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/gate"
	"github.com/drover-project/drover/internal/link"
	"github.com/drover-project/drover/internal/takeover"
)

// DoorConfig says where the machine's agent calls.
type DoorConfig struct {
	Listen string      // host:port on which the door listens; port 0 is a free one
	Dial   string      // host:port that the machine dials; "": Host or the host of Listen, with the port listened on
	Host   string      // at which machines reach this one; "" if nobody says so
	TLS    *tls.Config // mutual TLS of the links; nil for clear text
	Clock  clock.Clock
}

// Door serves the links at which the machine's agent calls. It has a goroutine, which ends with Close.
type Door struct {
	Home  *Home // who is called
	srv   *http.Server
	ended chan struct{} // closed when srv does not serve any more
}

// Open listens and serves, as a server of the fleet does, with an authority for this one machine. Errors: Invalid for an
// address at which no machine can reach this one, Unavailable for an address that is in use.
func Open(ctx context.Context, cfg DoorConfig) (*Door, error) {
	ln, err := takeover.Listen(ctx, cfg.Listen, "-listen", cfg.Clock)
	if err != nil {
		return nil, err
	}
	dial := cfg.Dial
	if dial == "" {
		dial = reachable(cfg.Host, ln.Addr().String())
	}
	if dial == "" {
		_ = ln.Close()
		return nil, drover.Errorf(drover.Invalid,
			"fleet.server: must be set, or -dial given: the address at which machines reach this one")
	}
	d := &Door{Home: NewHome(dial, cfg.Clock), ended: make(chan struct{})}
	handler, secure := link.Handler(d.Home, d.Home, link.NewNodes()), cfg.TLS
	if secure != nil {
		any := func(context.Context) error { return nil }
		handler, secure = gate.Handler(d.Home, any, handler), gate.TLS(d.Home, func() *tls.Config { return cfg.TLS })
	}
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(secure == nil)
	protocols.SetHTTP2(secure != nil)
	d.srv = &http.Server{Handler: handler, Protocols: &protocols, TLSConfig: secure, ReadHeaderTimeout: 10 * time.Second}
	go func() { // ends with Close
		defer close(d.ended)
		if secure != nil {
			_ = d.srv.ServeTLS(ln, "", "") // it was closed
		} else {
			_ = d.srv.Serve(ln)
		}
	}()
	return d, nil
}

// reachable returns the first of the two hosts that can be dialled, with the port of listening; "" if there is none.
func reachable(public, listening string) string {
	host, port, _ := net.SplitHostPort(listening) // a listener's address has both
	for _, h := range []string{public, host} {
		if ip := net.ParseIP(h); h != "" && (ip == nil || !ip.IsUnspecified()) {
			return net.JoinHostPort(h, port)
		}
	}
	return ""
}

// Close ends the listener and all calls.
func (d *Door) Close() {
	_ = d.srv.Close()
	<-d.ended
}
