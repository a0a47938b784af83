package keyring

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/secrets"
)

// Rotate makes a new root key. It answers from this server, which must lead. Errors: Invalid, Unavailable, NotLeader; NotImplemented
// below cluster version 3.
func (k *Keyring) Rotate(ctx context.Context, r secrets.Rotation) (*secrets.RootKeyMeta, uint64, error) {
	switch {
	case r.Algorithm != "" && r.Algorithm != secrets.AES256GCM:
		return nil, 0, drover.Errorf(drover.Invalid, "algo: it must be %q, not %q", secrets.AES256GCM, r.Algorithm)
	case r.Full && !r.Publish.IsZero():
		return nil, 0, drover.Errorf(drover.Invalid, "full and publish_time: a key that is prepublished cannot encrypt yet, give one of the two")
	case !r.Publish.IsZero() && !r.Publish.After(k.now()):
		return nil, 0, drover.Errorf(drover.Invalid, "publish_time: it must be in the future, got %s", r.Publish.UTC().Format(time.RFC3339))
	}
	return k.put(ctx, r, false)
}

// put makes and stores a key.
func (k *Keyring) put(ctx context.Context, r secrets.Rotation, first bool) (*secrets.RootKeyMeta, uint64, error) {
	row, err := k.wrap(ctx)
	if err != nil {
		return nil, 0, err
	}
	row.State = secrets.Active
	if !r.Publish.IsZero() {
		row.State, row.PublishTime = secrets.Prepublished, r.Publish.UnixNano()
	}
	index, result, err := k.deps.Log.Propose(ctx, &command.PutRootKey{Key: row, Full: r.Full, First: first, Time: row.CreateTime})
	if err != nil {
		return nil, 0, err
	}
	meta, ok := result.(*secrets.RootKeyMeta)
	if !ok {
		return nil, 0, drover.Errorf(drover.Internal, "the command PutRootKey answered %T", result)
	}
	return meta, index, nil
}

// Keys returns what may be shown of the root keys, ordered by id.
func (k *Keyring) Keys() []*secrets.RootKeyMeta {
	out := []*secrets.RootKeyMeta{}
	for row := range k.deps.Store.Snapshot().RootKeys() {
		out = append(out, row.Meta())
	}
	return out
}

// Remove removes a root key. Errors: NotFound; Invalid for the active one, or what is no id; Conflict for one in use, unless force is set.
func (k *Keyring) Remove(ctx context.Context, keyID string, force bool) (uint64, error) {
	if !id.Valid(keyID) {
		return 0, drover.Errorf(drover.Invalid, "key: the id of a root key is a UUID, not %q", keyID)
	}
	index, _, err := k.deps.Log.Propose(ctx, &command.DeleteRootKeys{KeyIDs: []string{keyID}, Force: force})
	return index, err
}
