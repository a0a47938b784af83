package nodes

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/httpapi"
)

// Introducer makes tokens with which machines become nodes; control/identity's Issuer is one.
type Introducer interface {
	Introduction(ctx context.Context, name, pool string, ttl time.Duration) (token string, err error)
}

// Introductions are those tokens, and how long they are good: where the request does not say, and at most.
type Introductions struct {
	Introducer
	DefaultTTL, MaxTTL time.Duration
}

// readIdentity answers GET /v1/client/identity with what the node's token says. The token itself stays on the node.
func (f *face) readIdentity(w http.ResponseWriter, r *http.Request) error {
	node, err := f.askedNode(r.URL.Query().Get("node_id"))
	if err != nil {
		return err
	}
	text, err := node.IdentityClaims(r.Context())
	if err != nil {
		return err
	}
	return f.Reply(w, r, struct{ Claims json.RawMessage }{text})
}

// renewIdentity answers PUT /v1/client/identity/renew: the node gets another token right away.
func (f *face) renewIdentity(w http.ResponseWriter, r *http.Request) error {
	var b struct{ NodeID string }
	if err := httpapi.DecodeJSON(r, &b); err != nil {
		return err
	}
	node, err := f.askedNode(cmp.Or(b.NodeID, r.URL.Query().Get("node_id")))
	if err != nil {
		return err
	}
	if err := node.RenewIdentity(r.Context()); err != nil {
		return err
	}
	return f.Reply(w, r, struct{}{})
}

// introduce answers PUT /v1/acl/identity/client-introduction-token with a token with which a machine becomes a node.
func (f *face) introduce(w http.ResponseWriter, r *http.Request) error {
	var b struct {
		TTL      acl.TTL
		NodeName string
		NodePool string
	}
	if err := httpapi.DecodeJSON(r, &b); err != nil {
		return err
	}
	ttl := cmp.Or(time.Duration(b.TTL), f.DefaultTTL)
	if ttl < 0 || ttl > f.MaxTTL {
		return drover.Errorf(drover.Invalid, "TTL: must be above 0 and at most %s (server.client_introduction.max_identity_ttl), got %s",
			f.MaxTTL, ttl)
	}
	token, err := f.Introduction(r.Context(), b.NodeName, b.NodePool, ttl)
	if err != nil {
		return err
	}
	return f.Reply(w, r, struct{ JWT string }{token})
}
