package relay

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
)

// What a relayed request says of itself; it is believed on connections of agents alone.
const (
	wayHeader    = "Drover-Relay-Way"
	fromHeader   = "Drover-Relay-From"
	clientHeader = "Drover-Relay-Client" // address of who called
	secureHeader = "Drover-Relay-Secure" // "true" if that was over TLS
)

// strip takes away what only agents may say.
func strip(h http.Header) {
	for _, name := range []string{wayHeader, fromHeader, clientHeader, secureHeader, httpapi.RefusedHeader} {
		h.Del(name)
	}
}

// rewrite makes the request that is sent: the same, with what tells where it came from.
func (l *Relay) rewrite(p *httputil.ProxyRequest) {
	out, in := p.Out, p.In
	out.URL.Scheme = "http"
	out.Host = in.Host
	out.URL.RawQuery = in.URL.RawQuery // the proxy drops what it cannot parse; that is for who answers
	if l.local != "" && in.URL.Path == "/v1/client/metadata" && !in.URL.Query().Has("node_id") {
		q := out.URL.Query()
		q.Set("node_id", l.local)
		out.URL.RawQuery = q.Encode()
	}
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if v, ok := in.Header[name]; ok { // the proxy took them away
			out.Header[name] = v
		}
	}
	strip(out.Header)
	out.Header.Set(fromHeader, l.servers.Self().ID)
	out.Header.Set(clientHeader, in.RemoteAddr)
	if in.TLS != nil {
		out.Header.Set(secureHeader, "true")
	}
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header.Set("User-Agent", "") // not the transport's own
	}
}

// FromPeer serves requests that other servers relay. It believes what they say of where the requests came from: it must
// stand only where nobody but a server can call.
func FromPeer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		way := httpapi.FromServer
		if httpapi.Way(r.Header.Get(wayHeader)) == httpapi.FromRegion {
			way = httpapi.FromRegion
		}
		next.ServeHTTP(w, received(r, way, r.Header.Get(fromHeader)))
	})
}

// FromNode serves requests that agents without server relay through their links. Their callers are strangers, who get no
// further than at the server itself: refuse, if it is not nil, is asked first.
func FromNode(next http.Handler, node string, refuse func(r *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuse != nil {
			if err := refuse(r); err != nil {
				http.Error(w, httpapi.Message(err), httpapi.Status(err))
				return
			}
		}
		next.ServeHTTP(w, received(r, httpapi.FromNode, node))
	})
}

// received is the request as its client sent it.
func received(r *http.Request, way httpapi.Way, from string) *http.Request {
	r = r.WithContext(httpapi.WithHop(r.Context(), httpapi.Hop{From: from, Way: way}))
	r.RemoteAddr = cmp.Or(r.Header.Get(clientHeader), r.RemoteAddr)
	r.TLS = nil
	if r.Header.Get(secureHeader) == "true" {
		r.TLS = &tls.ConnectionState{}
	}
	strip(r.Header)
	return r
}

// NewNode returns the relay of an agent without server, whose node has the id: what is not of the agent itself goes to a server,
// to which dial opens a connection.
func NewNode(
	cfg Config, id string, dial func(ctx context.Context) (net.Conn, error), c clock.Clock, log *slog.Logger,
) *Relay {
	owner := func(_ context.Context, place httpapi.Place, key string) (string, error) {
		if place == httpapi.AtNode {
			return key, nil
		}
		return "", nil
	}
	l := New(cfg, Deps{Servers: anyServer{id, dial}, Owner: owner, Node: id, Clock: c, Log: log})
	l.node = true
	return l
}

// anyServer stands for all servers: who dials does not choose.
type anyServer struct {
	node string
	dial func(ctx context.Context) (net.Conn, error)
}

var theServers = Server{ID: "servers", Name: "of the region", Address: "servers", Alive: true}

// Self implements Servers: it is none.
func (s anyServer) Self() Server { return Server{ID: s.node} }

// Leader implements Servers: whoever is dialled finds it.
func (anyServer) Leader() (Server, bool) { return theServers, true }

// List implements Servers.
func (anyServer) List() []Server { return []Server{theServers} }

// ByID implements Servers.
func (anyServer) ByID(string) (Server, bool) { return theServers, true }

// Changed implements Servers: nothing does.
func (anyServer) Changed() <-chan struct{} { return nil }

// Dial implements Servers.
func (s anyServer) Dial(ctx context.Context, _ string) (net.Conn, error) { return s.dial(ctx) }
