package httpapi

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/telemetry"
)

// GuardConfig says which web pages and which host names a Guard takes for the agent's own. The zero value is the
// strictest: no other page, and no name but "localhost".
type GuardConfig struct {
	// Origins are pages of other origins that may call the agent: "https://ide.example.com", with the port if it is not
	// the scheme's.
	Origins []string
	// Hosts are names by which the agent is called, beside IP addresses, "localhost" and names below it. "*.example.com"
	// is any name below example.com, "*" any name at all.
	Hosts []string
}

// Guard refuses requests that a web page has a browser send to the agent against its user's will. It stands before
// every route, whatever the method: a browser opens a websocket with a GET.
//
// A page of another origin is known by what browsers tell of it, in Sec-Fetch-Site or Origin, which no page can forge.
// A page that had its own name resolve to the agent's address (DNS rebinding) is of the agent's origin in the browser's
// eyes, and known by that name, in Host. Programs send none of the first two, and an address or a name of the agent's
// in Host. Preflights of CORS are refused like all else of other origins; no answer ever has CORS headers.
type Guard struct {
	origins http.CrossOriginProtection
	hosts   []string
	anyHost bool
	refused telemetry.Seldom
}

// NewGuard returns a guard. Errors: of an origin that is none.
func NewGuard(cfg GuardConfig) (*Guard, error) {
	g := &Guard{}
	for _, o := range cfg.Origins {
		if !isOrigin(o) {
			return nil, fmt.Errorf("%q is no origin as browsers write it, such as https://ide.example.com or http://localhost:8080", o)
		}
		if err := g.origins.AddTrustedOrigin(o); err != nil {
			return nil, err
		}
	}
	for _, h := range cfg.Hosts {
		h = hostName(h)
		g.anyHost = g.anyHost || h == "*"
		if h != "" {
			g.hosts = append(g.hosts, h)
		}
	}
	return g, nil
}

// isOrigin reports whether browsers write an origin so: without path, and with a port only if it is not the scheme's.
func isOrigin(o string) bool {
	u, err := url.Parse(o)
	if err != nil || u.Host == "" || o != u.Scheme+"://"+strings.ToLower(u.Host) {
		return false
	}
	return u.Scheme == "http" && u.Port() != "80" || u.Scheme == "https" && u.Port() != "443"
}

// Check says why the request is refused, with the status; nil if it is not.
func (g *Guard) Check(r *http.Request) error {
	if !g.knows(r.Host) {
		return &StatusError{http.StatusMisdirectedRequest, fmt.Errorf("this agent is not known as %q: "+
			"call it by its IP address or as localhost, "+
			"or add the name to allowed_hosts in the agent's configuration (DROVER_ALLOWED_HOSTS)", r.Host)}
	}
	if r.Header["Origin"] == nil && r.Header["Sec-Fetch-Site"] == nil || linked(r) {
		return nil
	}
	acting := r
	if r.Method != http.MethodPost { // the protection lets requests pass that only read
		acting = r.WithContext(r.Context())
		acting.Method = http.MethodPost
	}
	if err := g.origins.Check(acting); err != nil {
		from := r.Header.Get("Origin")
		if from == "" {
			from = "another origin"
		}
		return &StatusError{http.StatusForbidden, fmt.Errorf("a web page of %s may not call this agent: "+
			"if it shall, add its origin to allowed_origins in the agent's configuration (DROVER_ALLOWED_ORIGINS)", from)}
	}
	return nil
}

// linked reports a person's following a link on another page to a page of ours. What is there only shows: the paths are
// those of Nomad's web page, and hold nothing that acts.
func linked(r *http.Request) bool {
	page := r.URL.Path == "/" || r.URL.Path == "/ui" || strings.HasPrefix(r.URL.Path, "/ui/")
	return page && r.Method == http.MethodGet && r.Header["Origin"] == nil &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// knows reports whether the Host header is one of the agent's. Whoever has a name resolve to the agent's address chooses
// the name, but neither an address nor a name that resolves without asking anybody.
func (g *Guard) knows(header string) bool {
	if header == "" || g.anyHost { // no browser sends none
		return true
	}
	host := hostName(header)
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		slices.ContainsFunc(g.hosts, func(h string) bool {
			suffix, wild := strings.CutPrefix(h, "*")
			return h == host || wild && strings.HasPrefix(suffix, ".") && len(host) > len(suffix) && strings.HasSuffix(host, suffix)
		})
}

// hostName returns a host without its port, brackets and final dot, in small letters.
func hostName(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// Handler puts the guard before next.
func (g *Guard) Handler(next http.Handler, log *slog.Logger, c clock.Clock) http.Handler {
	return g.handler(next, log, c, func(*http.Request, error) {})
}

// handler is Handler that tells of what is refused.
func (g *Guard) handler(next http.Handler, log *slog.Logger, c clock.Clock, refused func(*http.Request, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, relayed := HopOf(r.Context()); relayed { // the agent that was called has checked it
			next.ServeHTTP(w, r)
			return
		}
		if err := g.Check(r); err != nil {
			g.refused.Warn(log, c.Now(), "refused what a web page may have sent", "method", r.Method, "path", r.URL.Path, "host", r.Host,
				"origin", r.Header.Get("Origin"), "site", r.Header.Get("Sec-Fetch-Site"), "from", r.RemoteAddr, "error", err)
			refused(r, err)
			http.Error(w, Message(err), Status(err))
			return
		}
		if r.Header["Origin"] != nil { // it was seen to; the websocket library would judge it again, without the configuration
			r = r.Clone(r.Context())
			r.Header.Del("Origin")
		}
		next.ServeHTTP(w, r)
	})
}
