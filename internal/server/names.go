package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/lifecycle"
	"github.com/drover-project/drover/internal/nameserver"
	"github.com/drover-project/drover/internal/node/egress"
	"github.com/drover-project/drover/internal/takeover"
)

// dnsConns is how many connections one client address may have with the name server.
const dnsConns = 64

// openNames opens the listeners of the name server, if there is one.
func (a *Agent) openNames(ctx context.Context) error {
	d := a.cfg.DNS
	if !d.Served() {
		return nil
	}
	cfg := nameserver.Config{
		Domain: d.Zone(), TTL: config.Duration(d.TTL, 0), Allow: d.Allowed(), Recursors: d.Forwarders(egress.Resolvers()),
	}
	a.dns = nameserver.New(&cfg, a.findService)
	for _, address := range d.Listen() {
		stream, err := takeover.Listen(ctx, address, "dns.port", a.deps.Clock)
		if err != nil {
			return err
		}
		cfg.TCP = append(cfg.TCP, httpapi.LimitConns(stream, dnsConns))
		packets, err := new(net.ListenConfig).ListenPacket(ctx, "udp", stream.Addr().String())
		if err != nil {
			return drover.Errorf(drover.Unavailable, "dns.port: listening on %s: %w", address, err)
		}
		cfg.UDP = append(cfg.UDP, packets)
	}
	return nil
}

// DNSAddr is where the name server answers first; "" if there is none.
func (a *Agent) DNSAddr() string { return a.dns.Addr() }

// namesPart serves names.
func (a *Agent) namesPart() lifecycle.Part {
	return lifecycle.Part{Name: "dns", Run: a.dns.Run}
}

// findService asks the faces where a service is, so that names are told to nobody who could not read them there: with dns.token, or as
// anybody. A server answers from its own state; an agent without server asks one.
func (a *Agent) findService(ctx context.Context, namespace, name string) (found []*drover.ServiceRegistration, err error) {
	faces, err := a.handler()
	if err != nil {
		return nil, err
	}
	query := url.Values{"namespace": {namespace}, "stale": {""}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/v1/service/"+url.PathEscape(name)+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	r.RemoteAddr, r.RequestURI = "127.0.0.1:0", r.URL.RequestURI()
	if a.cfg.DNS.Token != "" {
		r.Header.Set("X-Nomad-Token", a.cfg.DNS.Token)
	}
	w := &kept{header: http.Header{}, status: http.StatusOK}
	faces.ServeHTTP(w, r)
	switch w.status {
	case http.StatusOK:
		err = json.Unmarshal(w.body.Bytes(), &found)
	case http.StatusForbidden, http.StatusNotFound, http.StatusBadRequest: // who may not know, or asks for what cannot be
	default:
		err = errors.New(w.body.String())
	}
	if err != nil {
		return nil, fmt.Errorf("looking for service %s: %w", name, err)
	}
	return found, nil
}

// kept is an answer in memory.
type kept struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (k *kept) Header() http.Header { return k.header }

// WriteHeader implements http.ResponseWriter.
func (k *kept) WriteHeader(status int) { k.status = status }

// Write implements http.ResponseWriter.
func (k *kept) Write(p []byte) (int, error) { return k.body.Write(p) }

// SetReadDeadline is for http.ResponseController: the body is none, and the context ends the request.
func (k *kept) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline is for http.ResponseController.
func (k *kept) SetWriteDeadline(time.Time) error { return nil }

// Flush implements http.Flusher.
func (k *kept) Flush() {}
