package link

import (
	"context"
	"net/http"

	"connectrpc.com/connect"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/link/wire"
)

// Caller is who a request's headers say that it is of.
type Caller struct {
	NodeID string
	Secret string
	Tokens exchange.Tokens
}

// CallerOf is who the headers say that a request is of.
func CallerOf(h http.Header) Caller {
	return Caller{h.Get(nodeHeader), h.Get(secretHeader), exchange.Tokens{Join: h.Get(tokenHeader), Introduction: h.Get(introHeader)}}
}

// admitted checks who sent a request by what its headers say. A node that registers is known by its tokens. One that opens its
// tunnel, or a relay, is known by its secret, or by its tokens before it has registered, so that it is reachable from the first
// moment. All others are known by their secrets. Errors: Unauthorized, NotFound, Unavailable.
func admitted(ctx context.Context, auth Authenticator, procedure string, who Caller) error {
	if procedure == procRegister {
		return auth.Admit(ctx, who.Tokens, &drover.Node{ID: who.NodeID})
	}
	err := auth.Authenticate(ctx, who.NodeID, who.Secret)
	if (procedure == procTunnel || procedure == procRelay) && drover.CodeOf(err) == drover.NotFound {
		err = auth.Admit(ctx, who.Tokens, &drover.Node{ID: who.NodeID})
	}
	return err
}

// knocking puts admitted before a handler: nothing of a request's body is read before it is known who sent it.
func knocking(auth Authenticator, next http.Handler) http.Handler {
	refusals := connect.NewErrorWriter(wire.HandlerOptions)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := admitted(r.Context(), auth, r.URL.Path, CallerOf(r.Header)); err != nil {
			_ = refusals.Write(w, r, wire.Wrap(err)) // who asked may be gone
			return
		}
		next.ServeHTTP(w, r)
	})
}
