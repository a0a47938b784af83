package keyring

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/secrets"
)

// Log commits commands; *raftlog.Log satisfies it. Those of the keyring need cluster version 3: until then it refuses them.
type Log interface {
	Propose(ctx context.Context, c command.Command) (index uint64, result any, err error)
}

// Config is how long keys live; the zero value stands for the defaults.
type Config struct {
	RotateAfter time.Duration // how long a key encrypts until another one does; default 720h, as Nomad's
	KeepFor     time.Duration // how long a key that nothing needs is kept after it was retired; default 1h
	CollectEach time.Duration // time between two looks for keys that nothing needs; default 10m
}

// Deps is what a Keyring needs.
type Deps struct {
	Log   Log
	Store *store.Store
	Clock clock.Clock
	IDs   id.Source // used by several goroutines at once
	// Wrappers wrap keys; the first Wraps of them wrap new ones, the others only unwrap.
	Wrappers []Wrapper
	Wraps    int
	Logger   *slog.Logger
}

// Keyring has the root keys. It is for any number of goroutines.
type Keyring struct {
	cfg  Config
	deps Deps

	opening sync.Mutex // held while a key is unwrapped, so that it is asked for once
	mu      sync.Mutex // guards what follows
	open    map[string]*opened
	locked  map[string]string // why keys of the state cannot be unwrapped here, by their ids, as Run found
}

const (
	// arrival bounds how long a key is waited for that the state of this server does not have yet.
	arrival = 2 * time.Second
	// unwrapping bounds how long one service, or the other servers, are asked.
	unwrapping = 5 * time.Second
)

// New returns a Keyring.
func New(cfg Config, deps Deps) *Keyring {
	cfg.RotateAfter = cmp.Or(cfg.RotateAfter, 720*time.Hour)
	cfg.KeepFor = cmp.Or(cfg.KeepFor, time.Hour)
	cfg.CollectEach = cmp.Or(cfg.CollectEach, 10*time.Minute)
	return &Keyring{cfg: cfg, deps: deps, open: map[string]*opened{}, locked: map[string]string{}}
}

func (k *Keyring) now() time.Time { return k.deps.Clock.Now().UTC() }

// active returns the key that encrypts and signs. Where there is none yet it is waited for, for a bounded time. Errors: Unavailable.
func (k *Keyring) active(ctx context.Context) (*opened, error) {
	row, err := k.await(ctx, func(s *store.Snapshot) *secrets.RootKey { return activeOf(s) },
		"the keyring has no key yet: the leader makes the first one once all servers read cluster version 3")
	if err != nil {
		return nil, err
	}
	return k.unwrapped(ctx, row)
}

func activeOf(s *store.Snapshot) *secrets.RootKey {
	for row := range s.RootKeys() {
		if row.State == secrets.Active {
			return row
		}
	}
	return nil
}

// byID returns the key. One that is not in this server's state is waited for, for a bounded time. Errors: Unavailable.
func (k *Keyring) byID(ctx context.Context, id string) (*opened, error) {
	row, err := k.await(ctx, func(s *store.Snapshot) *secrets.RootKey { return s.RootKey(id) },
		"root key "+id+" is not known on this server: it was removed, or this server is behind the leader")
	if err != nil {
		return nil, err
	}
	return k.unwrapped(ctx, row)
}

func (k *Keyring) await(ctx context.Context, find func(*store.Snapshot) *secrets.RootKey, lacks string) (*secrets.RootKey, error) {
	if row := find(k.deps.Store.Snapshot()); row != nil {
		return row, nil
	}
	ctx, cancel := k.deps.Clock.WithTimeout(ctx, arrival)
	defer cancel()
	for {
		changed := k.deps.Store.Watch(tables.RootKeys, "")
		if row := find(k.deps.Store.Snapshot()); row != nil {
			return row, nil
		}
		if !clock.Await(ctx, k.deps.Clock, clock.Forever, changed) {
			return nil, drover.Errorf(drover.Unavailable, "%s", lacks)
		}
	}
}

func (k *Keyring) remembered(id string) *opened {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.open[id]
}

// unwrapped returns the key, which any of its wrappers may open. Errors: Unavailable, with what each of them says.
func (k *Keyring) unwrapped(ctx context.Context, row *secrets.RootKey) (*opened, error) {
	if o := k.remembered(row.KeyID); o != nil {
		return o, nil
	}
	k.opening.Lock()
	defer k.opening.Unlock()
	if o := k.remembered(row.KeyID); o != nil {
		return o, nil
	}
	var o *opened
	err := k.unwrap(ctx, row.Wrapped, func(plain []byte) (err error) {
		o, err = parse(plain, row.KeyID)
		return err
	})
	if err != nil {
		return nil, drover.Errorf(drover.Unavailable, "root key %s cannot be unwrapped on this server: %w", row.KeyID, err)
	}
	k.mu.Lock()
	k.open[row.KeyID] = o
	k.mu.Unlock()
	return o, nil
}

// unwrap opens what any of its wrappers may open, until the function takes what came out. Errors: what each of them says.
func (k *Keyring) unwrap(ctx context.Context, all []secrets.Wrapped, take func(plain []byte) error) error {
	var faults []error
	for _, wrapped := range all {
		known := false
		for _, w := range k.deps.Wrappers {
			if w.Provider() != wrapped.Provider {
				continue
			}
			known = true
			plain, err := k.unwrapBy(ctx, w, wrapped)
			if err == nil {
				err = take(plain)
			}
			if err == nil {
				return nil
			}
			faults = append(faults, err)
		}
		if !known {
			faults = append(faults, drover.Errorf(drover.NotFound, "this server has no keyring %q in its configuration", wrapped.Provider))
		}
	}
	return errors.Join(faults...)
}

// unwrapBy asks one wrapper. It has a time of its own: a service that does not answer must not keep the others from being asked.
func (k *Keyring) unwrapBy(ctx context.Context, w Wrapper, wrapped secrets.Wrapped) ([]byte, error) {
	ctx, cancel := k.deps.Clock.WithTimeout(ctx, unwrapping)
	defer cancel()
	return w.Unwrap(ctx, wrapped.KeyID, wrapped.Ciphertext)
}

// UnwrapKey opens a key that WrapKey wrapped, here or on other servers. Errors: Unavailable, with what each wrapper says.
func (k *Keyring) UnwrapKey(ctx context.Context, wrapped []secrets.Wrapped) (key []byte, err error) {
	err = k.unwrap(ctx, wrapped, func(plain []byte) error {
		key = plain
		return nil
	})
	if err != nil {
		return nil, drover.Errorf(drover.Unavailable, "its key cannot be unwrapped on this server: %w", err)
	}
	return key, nil
}

// wrap makes a new root key and wraps it with each wrapper that is to: one that cannot keeps the key from being made.
func (k *Keyring) wrap(ctx context.Context) (*secrets.RootKey, error) {
	m, err := generate(k.deps.IDs.New())
	if err != nil {
		return nil, err
	}
	o, err := m.open()
	if err != nil {
		return nil, err
	}
	row := &secrets.RootKey{RootKeyMeta: secrets.RootKeyMeta{KeyID: m.KeyID, Algorithm: secrets.AES256GCM, CreateTime: k.now().UnixNano()}}
	o.public(row)
	plain, err := m.marshal()
	if err != nil {
		return nil, err
	}
	if row.Wrapped, err = k.WrapKey(ctx, plain); err != nil {
		return nil, err
	}
	return row, nil
}

// WrapKey encrypts a key with each wrapper that is to, as root keys are. Errors: that of the first that cannot.
func (k *Keyring) WrapKey(ctx context.Context, plain []byte) (out []secrets.Wrapped, err error) {
	for _, w := range k.deps.Wrappers[:k.deps.Wraps] {
		asking, cancel := k.deps.Clock.WithTimeout(ctx, unwrapping)
		kek, text, err := w.Wrap(asking, plain, k.former(w))
		cancel()
		if err != nil {
			return nil, drover.Errorf(drover.CodeOf(err), "wrapping a key with keyring %q: %w", w.Provider(), err)
		}
		out = append(out, secrets.Wrapped{Provider: w.Provider(), Name: w.Name(), KeyID: kek, Ciphertext: text})
	}
	return out, nil
}

// former is the key-encryption key with which the wrapper wrapped the active root key.
func (k *Keyring) former(w Wrapper) string {
	if row := activeOf(k.deps.Store.Snapshot()); row != nil {
		i := slices.IndexFunc(row.Wrapped, func(x secrets.Wrapped) bool { return x.Provider == w.Provider() && x.Name == w.Name() })
		if i >= 0 {
			return row.Wrapped[i].KeyID
		}
	}
	return ""
}
