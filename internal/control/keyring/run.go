package keyring

import (
	"context"
	"maps"
	"time"

	"github.com/drover-project/drover"
	nouns "github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/sealed"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/secrets"
)

// again is how long a loop waits after something failed.
const again = 5 * time.Second

// Run unwraps root keys as they come, so that they are there when they are needed, and forgets those that were removed; until ctx ends.
func (k *Keyring) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		changed := k.deps.Store.Watch(tables.RootKeys, "")
		wait := k.unwrapAll(ctx, k.deps.Store.Snapshot())
		clock.Await(ctx, k.deps.Clock, wait, changed)
	}
	return nil
}

// unwrapAll unwraps the keys of the state, and returns when it is to be tried again.
func (k *Keyring) unwrapAll(ctx context.Context, s *store.Snapshot) time.Duration {
	wait, before, locked := clock.Forever, k.Locked(), map[string]string{}
	for row := range s.RootKeys() {
		_, err := k.unwrapped(ctx, row)
		if ctx.Err() != nil {
			return again
		}
		if err != nil {
			wait, locked[row.KeyID] = again, err.Error()
			if before[row.KeyID] == "" {
				k.deps.Logger.Warn("a root key is not usable on this server yet", "key", row.KeyID, "error", err)
			}
		} else if before[row.KeyID] != "" {
			k.deps.Logger.Info("the root key is usable on this server now", "key", row.KeyID)
		}
	}
	k.mu.Lock()
	k.locked = locked
	k.mu.Unlock()
	k.forget(s)
	return wait
}

// Locked says why keys of the state cannot be unwrapped on this server, by their ids; those that can are not among them.
func (k *Keyring) Locked() map[string]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.locked)
}

// forget drops the keys that the state has no more.
func (k *Keyring) forget(s *store.Snapshot) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id := range k.open {
		if s.RootKey(id) == nil {
			delete(k.open, id)
		}
	}
}

// Lead does what the leader does for the keyring, until term ends: the first key, what is due by time, and removing what nothing needs.
func (k *Keyring) Lead(term context.Context) {
	collect := k.now().Add(k.cfg.CollectEach)
	for term.Err() == nil {
		keys, raised := k.deps.Store.Watch(tables.RootKeys, ""), k.deps.Store.Watch(tables.Cluster, "")
		next, err := k.due(term)
		if !k.now().Before(collect) {
			collect = k.now().Add(k.cfg.CollectEach)
			if cerr := k.collect(term); err == nil {
				err = cerr
			}
		}
		if collect.Before(next) {
			next = collect
		}
		wait := max(0, next.Sub(k.now()))
		switch code := drover.CodeOf(err); {
		case err == nil || term.Err() != nil:
		case code == drover.Conflict: // the state has changed meanwhile
			wait = 0
		default:
			k.deps.Logger.Warn("keeping the keyring", "error", err)
			wait = again
		}
		clock.Await(term, k.deps.Clock, wait, keys, raised)
	}
}

// due does what is due by time, and returns when it is to be asked again at the latest.
func (k *Keyring) due(ctx context.Context) (time.Time, error) {
	s, now := k.deps.Store.Snapshot(), k.now()
	next := now.Add(k.cfg.CollectEach)
	active := activeOf(s)
	if active == nil {
		if nouns.VersionOf(s.Cluster()) < command.KindPutRootKey.Since() {
			return next, nil // it would be made for nothing; the version is watched
		}
		meta, _, err := k.put(ctx, secrets.Rotation{}, true)
		if err == nil {
			k.deps.Logger.Info("made the first root key", "key", meta.KeyID)
		}
		return next, err
	}
	var prepublished *secrets.RootKey
	for row := range s.RootKeys() {
		if row.State == secrets.Prepublished && (prepublished == nil || row.PublishTime < prepublished.PublishTime) {
			prepublished = row
		}
	}
	if prepublished != nil {
		if at := time.Unix(0, prepublished.PublishTime); at.After(now) {
			return at, nil
		}
		_, _, err := k.deps.Log.Propose(ctx, &command.SetRootKeyState{
			KeyID: prepublished.KeyID, From: secrets.Prepublished, To: secrets.Active, Time: now.UnixNano(),
		})
		return now, err
	}
	if at := time.Unix(0, max(active.CreateTime, active.PublishTime)).Add(k.cfg.RotateAfter); at.After(now) {
		if at.Before(next) {
			next = at
		}
		return next, nil
	}
	// Verifiers are given time to learn of the new key before anything is signed with it.
	_, _, err := k.put(ctx, secrets.Rotation{Publish: now.Add(min(time.Hour, k.cfg.RotateAfter/2))}, false)
	return now, err
}

// collect removes the keys that were retired long ago and that nothing needs.
func (k *Keyring) collect(ctx context.Context) error {
	s, before := k.deps.Store.Snapshot(), k.now().Add(-k.cfg.KeepFor).UnixNano()
	for row := range s.RootKeys() {
		if row.RetiredIndex == 0 || row.RetiredTime > before || row.State == secrets.Rekeying || sealed.Use(s, row) != "" {
			continue
		}
		_, _, err := k.deps.Log.Propose(ctx, &command.DeleteRootKeys{KeyIDs: []string{row.KeyID}})
		if code := drover.CodeOf(err); err != nil && code != drover.Conflict && code != drover.NotFound {
			return err
		}
		k.deps.Logger.Info("removed a root key that nothing needs", "key", row.KeyID)
	}
	return nil
}
