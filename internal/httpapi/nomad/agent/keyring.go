package agent

import (
	"context"
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
)

// Keyring is the keys of the servers' gossip. Errors: Invalid if gossip is not encrypted, or the key is none; Unavailable if a
// server did not answer or refused: which ones is in the answer.
type Keyring interface {
	ListKeys(ctx context.Context) (Keys, error)
	// InstallKey gives all servers a key that they understand from then on.
	InstallKey(ctx context.Context, key string) (Keys, error)
	// UseKey has all servers encrypt with a key that they have.
	UseKey(ctx context.Context, key string) (Keys, error)
	// RemoveKey has all servers forget a key that none encrypts with.
	RemoveKey(ctx context.Context, key string) (Keys, error)
}

// Keys is what the servers said of their keys.
type Keys struct {
	Messages    map[string]string // what servers complained of, by name
	Keys        map[string]int    // how many servers have the key
	PrimaryKeys map[string]int    // how many encrypt with it
	NumNodes    int
}

// listKeys answers GET /v1/agent/keyring/list.
func (f *face) listKeys(w http.ResponseWriter, r *http.Request) error {
	return f.keys(w, r, f.Keyring.ListKeys)
}

// changeKeys answers PUT /v1/agent/keyring/install, use and remove.
func (f *face) changeKeys(change func(k Keyring, ctx context.Context, key string) (Keys, error)) httpapi.Handle {
	return func(w http.ResponseWriter, r *http.Request) error {
		var b struct{ Key string }
		if err := httpapi.DecodeJSON(r, &b); err != nil {
			return err
		}
		if b.Key == "" {
			return drover.Errorf(drover.Invalid, "missing Key: a gossip key is base64 of 16, 24 or 32 bytes")
		}
		return f.keys(w, r, func(ctx context.Context) (Keys, error) { return change(f.Keyring, ctx, b.Key) })
	}
}

func (f *face) keys(w http.ResponseWriter, r *http.Request, ask func(ctx context.Context) (Keys, error)) error {
	keys, err := ask(r.Context())
	if err != nil {
		return err
	}
	return f.Reply(w, r, keys)
}
