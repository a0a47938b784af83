package agent

import (
	"log/slog"
	"net/http"
	"net/http/httputil"

	"github.com/drover-project/drover/internal/httpapi"
)

// ofAnyNode returns a route of the agent itself that is answered by the agent of the node which node_id names, if that is another.
func (f *face) ofAnyNode(route httpapi.Route) httpapi.Route {
	handle, raw := route.Handle, route.Raw
	route.Raw = nil
	route.Handle = func(w http.ResponseWriter, r *http.Request) error {
		q := r.URL.Query()
		if node := q.Get("node_id"); f.NodeAgent != nil && node != "" && q.Get("server_id") == "" && node != f.Process.LocalNode() {
			return f.askNode(w, r, node)
		}
		if raw != nil {
			raw(w, r)
			return nil
		}
		return handle(w, r)
	}
	return route
}

// askNode sends the request to the agent of a node, as it is. Errors: Unavailable if the node is not reached.
func (f *face) askNode(w http.ResponseWriter, r *http.Request, node string) error {
	to, err := f.NodeAgent(node)
	if err != nil {
		return err
	}
	var failed error
	proxy := &httputil.ReverseProxy{
		Transport: to, FlushInterval: -1, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = "http", "node", p.In.Host
			p.Out.URL.RawQuery = p.In.URL.RawQuery
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
	}
	proxy.ServeHTTP(w, r)
	return failed
}
