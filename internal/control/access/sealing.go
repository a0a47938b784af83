package access

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/secrets"
)

// Keyring encrypts and decrypts the secrets of auth methods; *keyring.Keyring satisfies it.
type Keyring interface {
	Seal(ctx context.Context, plain []byte, purpose string) (keyID string, text []byte, err error)
	Open(ctx context.Context, keyID string, text []byte, purpose string) ([]byte, error)
}

// resealAgain is how long Lead waits after something failed.
const resealAgain = 5 * time.Second

// purpose binds what is encrypted to its method. That of a variable begins with a namespace, which is never empty.
func purpose(method string) string { return "\x00auth-method\x00" + method }

// Seal returns a copy of the method as it may be kept: with its secrets encrypted. Errors: Unavailable; NotImplemented without a keyring.
func (a *Access) Seal(ctx context.Context, m *acl.AuthMethod) (*acl.AuthMethod, error) {
	given := m.Secrets()
	out := m.WithoutSecrets()
	if given == (acl.MethodSecrets{}) {
		return out, nil
	}
	if a.deps.Keyring == nil {
		return nil, drover.Errorf(drover.NotImplemented, "this server has no keyring, which encrypts the secrets of auth methods")
	}
	plain, err := json.Marshal(given)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "Config: its secrets cannot be encoded")
	}
	id, data, err := a.deps.Keyring.Seal(ctx, plain, purpose(m.Name))
	if err != nil {
		return nil, err
	}
	out.Sealed = &acl.SealedSecrets{KeyID: id, Data: data}
	return out, nil
}

// Open returns a copy of the method with its secrets. Older logs and snapshots have some that are not encrypted. Errors: Unavailable if
// the key cannot be used, Internal if they are damaged.
func (a *Access) Open(ctx context.Context, m *acl.AuthMethod) (*acl.AuthMethod, error) {
	if m.Sealed == nil {
		return m, nil
	}
	if a.deps.Keyring == nil {
		return nil, drover.Errorf(drover.NotImplemented, "this server has no keyring, which decrypts the secrets of auth-method %q", m.Name)
	}
	plain, err := a.deps.Keyring.Open(ctx, m.Sealed.KeyID, m.Sealed.Data, purpose(m.Name))
	if err != nil {
		return nil, drover.Errorf(drover.CodeOf(err), "auth-method %q: its secrets cannot be decrypted, write it with them again: %w",
			m.Name, err)
	}
	var given acl.MethodSecrets
	if json.Unmarshal(plain, &given) != nil {
		return nil, drover.Errorf(drover.Internal, "auth-method %q: what was encrypted are no secrets", m.Name)
	}
	return m.WithSecrets(given), nil
}

// completed returns the method with those of old's secrets that it says to keep; old is nil for a new one. Errors: Invalid where there is
// none, and those of Open.
func (a *Access) completed(ctx context.Context, m, old *acl.AuthMethod) (*acl.AuthMethod, error) {
	keeps := m.Secrets()
	if keeps.OIDCClientSecret != acl.Redacted && keeps.PemKey != acl.Redacted {
		return m, nil
	}
	var has acl.MethodSecrets
	if old != nil {
		opened, err := a.Open(ctx, old)
		if err != nil {
			return nil, err
		}
		has = opened.Secrets()
	}
	for field, missing := range map[string]bool{
		"Config.OIDCClientSecret":                      keeps.OIDCClientSecret == acl.Redacted && has.OIDCClientSecret == "",
		"Config.OIDCClientAssertion.PrivateKey.PemKey": keeps.PemKey == acl.Redacted && has.PemKey == "",
	} {
		if missing {
			return nil, drover.Errorf(drover.Invalid, "%s: %q stands for a secret that is there, and there is none: give it",
				field, string(acl.Redacted))
		}
	}
	return m.WithSecrets(has), nil
}

// Lead encrypts the secrets of auth methods that are not, as those of older logs, or with a key that is to be removed, until term ends.
func (a *Access) Lead(term context.Context, log *slog.Logger) {
	told := map[string]bool{}
	for term.Err() == nil {
		methods, keys := a.deps.Store.Watch(tables.AuthMethods, ""), a.deps.Store.Watch(tables.RootKeys, "")
		raised := a.deps.Store.Watch(tables.Cluster, "")
		s, wait := a.deps.Store.Snapshot(), clock.Forever
		for m := range s.AuthMethods("") {
			if !due(s, m) {
				continue
			}
			err := a.reseal(term, m)
			code := drover.CodeOf(err)
			if err == nil || term.Err() != nil || code == drover.Conflict { // somebody wrote it meanwhile, which is watched
				delete(told, m.Name)
				continue
			}
			wait = resealAgain
			if !told[m.Name] {
				log.Warn("encrypting the secrets of an auth method", "auth_method", m.Name, "error", err)
				told[m.Name] = true
			}
		}
		clock.Await(term, a.deps.Clock, wait, methods, keys, raised)
	}
}

// due reports whether the method's secrets are to be encrypted, or encrypted otherwise.
func due(s *store.Snapshot, m *acl.AuthMethod) bool {
	if m.Sealed == nil {
		return m.Secrets() != acl.MethodSecrets{}
	}
	key := s.RootKey(m.Sealed.KeyID)
	return key != nil && (key.State == secrets.Rekeying || key.State == secrets.Deprecated)
}

// reseal encrypts the method's secrets with the active key. Nothing else of it changes, so that logins that are under way go on.
func (a *Access) reseal(ctx context.Context, m *acl.AuthMethod) error {
	opened, err := a.Open(ctx, m)
	if err != nil {
		return err
	}
	next, err := a.Seal(ctx, opened)
	if err != nil {
		return err
	}
	_, err = a.apply(ctx, &command.UpsertAuthMethods{Methods: []*acl.AuthMethod{next}, Reseal: true})
	return err
}
