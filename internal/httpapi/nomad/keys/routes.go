package keys

import (
	"context"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/secrets"
)

// Keyring has the root keys; control/keyring implements it. Writes return the index at which they were committed.
type Keyring interface {
	Keys() []*secrets.RootKeyMeta
	// Rotate makes a key. Errors: Invalid, which names the parameter; Unavailable.
	Rotate(ctx context.Context, r secrets.Rotation) (*secrets.RootKeyMeta, uint64, error)
	// Remove removes a key. Errors: NotFound, Invalid, Conflict.
	Remove(ctx context.Context, keyID string, force bool) (uint64, error)
	PublicKeys() []jose.JSONWebKey
}

// Config is what the group needs beside the cluster.
type Config struct {
	Keyring Keyring
	// Issuer is what identities name as theirs; "" = none, and there is no discovery.
	Issuer string
}

// face answers the group's requests.
type face struct {
	*answer.Cluster
	Config
}

// Routes lists the group's routes.
func Routes(c *answer.Cluster, cfg Config) []httpapi.Route {
	f := &face{c, cfg}
	public := httpapi.Level(policy.Agent, policy.Read).OpenAs(acl.OpenKeys)
	reads, rotates := httpapi.Operator(policy.KeyringRead), httpapi.Operator(policy.KeyringRotate)
	deletes := httpapi.Operator(policy.KeyringDelete)
	return []httpapi.Route{
		{Pattern: "GET /.well-known/jwks.json", Where: httpapi.Any, Need: public, Handle: f.jwks},
		{Pattern: "GET /.well-known/openid-configuration", Where: httpapi.Any, Need: public, Handle: f.discovery},
		{Pattern: "GET /v1/operator/keyring/keys", Where: httpapi.Reads, Need: reads, Handle: f.list},
		{Pattern: "PUT,POST /v1/operator/keyring/rotate", Where: httpapi.Leader, Need: rotates, Handle: f.rotate},
		{Pattern: "DELETE /v1/operator/keyring/key/{id}", Where: httpapi.Leader, Need: deletes, Handle: f.remove},
	}
}

// jwks answers GET /.well-known/jwks.json. Clients take the first key as the sign that a leader is there and has written (Nomad's own
// test server does).
func (f *face) jwks(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Cache-Control", cached)
	return httpapi.WriteJSON(w, r, http.StatusOK, jose.JSONWebKeySet{Keys: f.Keyring.PublicKeys()})
}

// list answers GET /v1/operator/keyring/keys.
func (f *face) list(w http.ResponseWriter, r *http.Request) error {
	return answer.Lister[*secrets.RootKeyMeta, *secrets.RootKeyMeta]{
		On: []answer.Source{{Table: tables.RootKeys}},
		Items: func(answer.Query, answer.Snapshot) iter.Seq[*secrets.RootKeyMeta] {
			return slices.Values(f.Keyring.Keys())
		},
		ID:   func(k *secrets.RootKeyMeta) string { return k.KeyID },
		View: func(k *secrets.RootKeyMeta, _ answer.Snapshot) *secrets.RootKeyMeta { return k },
		Sees: answer.Everybody[*secrets.RootKeyMeta], // the route needs it
	}.Serve(f.Cluster, w, r)
}

// rotate answers PUT /v1/operator/keyring/rotate?full&algo&publish_time.
func (f *face) rotate(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	rotation := secrets.Rotation{Algorithm: secrets.Algorithm(q.Get("algo"))}
	var err error
	if rotation.Full, err = flag(q.Get("full"), "full", q.Has("full")); err != nil {
		return err
	}
	if text := q.Get("publish_time"); text != "" {
		at, err := strconv.ParseInt(text, 10, 64)
		if err != nil || at <= 0 {
			return drover.Errorf(drover.Invalid, "publish_time: must be nanoseconds since 1970, got %q", text)
		}
		rotation.Publish = time.Unix(0, at)
	}
	made, index, err := f.Keyring.Rotate(r.Context(), rotation)
	if err != nil {
		return err
	}
	told := *made
	told.CreateIndex, told.ModifyIndex = 0, 0 // as Nomad's: who waits for a later index than the key's would wait for the next change
	return f.Written(w, r, drover.Outcome{Index: index}, struct{ Key *secrets.RootKeyMeta }{&told})
}

// remove answers DELETE /v1/operator/keyring/key/ID?force.
func (f *face) remove(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	force, err := flag(q.Get("force"), "force", q.Has("force"))
	if err != nil {
		return err
	}
	index, err := f.Keyring.Remove(r.Context(), r.PathValue("id"), force)
	if err != nil {
		return err
	}
	return f.Written(w, r, drover.Outcome{Index: index}, struct{}{})
}

// flag reads a parameter that is true where it has no value.
func flag(text, name string, given bool) (bool, error) {
	if text == "" {
		return given, nil
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return false, drover.Errorf(drover.Invalid, "%s: must be true or false, got %q", name, text)
	}
	return on, nil
}
