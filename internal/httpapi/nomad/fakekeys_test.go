package nomad_test

import (
	"context"
	"crypto/ed25519"

	"github.com/go-jose/go-jose/v4"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/secrets"
)

const (
	rootKeyID    = "0c2d41cb-8f6a-4a72-9f7d-5b7e3f3a2b11"
	newRootKeyID = "7b1a93e0-53e1-4b6b-8b0f-0d9d1c1a1b22"
)

// fakeKeys is a keyring over a store whose keys are no keys.
type fakeKeys struct{ store *store.Store }

func (f fakeKeys) Keys() []*secrets.RootKeyMeta {
	out := []*secrets.RootKeyMeta{}
	for k := range f.store.Snapshot().RootKeys() {
		out = append(out, k.Meta())
	}
	return out
}

func (f fakeKeys) Rotate(_ context.Context, r secrets.Rotation) (*secrets.RootKeyMeta, uint64, error) {
	if r.Algorithm != "" && r.Algorithm != secrets.AES256GCM {
		return nil, 0, drover.Errorf(drover.Invalid, "algo: it must be %q, not %q", secrets.AES256GCM, r.Algorithm)
	}
	k := &secrets.RootKey{RootKeyMeta: secrets.RootKeyMeta{
		KeyID: newRootKeyID, Algorithm: secrets.AES256GCM, CreateTime: fixed.UnixNano(), State: secrets.Active,
	}}
	if !r.Publish.IsZero() {
		k.State, k.PublishTime = secrets.Prepublished, r.Publish.UnixNano()
	}
	index := put(f.store, func(t *store.Txn) {
		k.CreateIndex, k.ModifyIndex = t.Index(), t.Index()
		t.PutRootKey(k)
	})
	return k.Meta(), index, nil
}

func (f fakeKeys) Remove(_ context.Context, keyID string, force bool) (uint64, error) {
	k := f.store.Snapshot().RootKey(keyID)
	switch {
	case k == nil:
		return 0, drover.Errorf(drover.NotFound, "root key %s not found", keyID)
	case k.State == secrets.Active && !force:
		return 0, drover.Errorf(drover.Invalid, "root key %s is active: rotate the keyring before it is removed", keyID)
	}
	return put(f.store, func(t *store.Txn) { t.DeleteRootKey(k) }), nil
}

func (f fakeKeys) PublicKeys() []jose.JSONWebKey {
	public := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)).Public()
	return []jose.JSONWebKey{{Key: public, KeyID: rootKeyID + ".ed25519", Algorithm: "EdDSA", Use: "sig"}}
}
