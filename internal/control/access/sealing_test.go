package access

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/keyring"
	"github.com/drover-project/drover/internal/control/snapshot"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/control/variables"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/secrets"
)

const (
	clientSecret = "hunter2-of-the-client"
	pemKey       = "pem-of-the-client-assertion"
)

// sealer has what keeps the secrets of auth methods, and a log of which the bytes are kept.
type sealer struct {
	*Access
	t     *testing.T
	log   *memoryLog
	store *store.Store
	keys  *keyring.Keyring
	vars  *variables.Variables
	root  *rights.Caller
	asked *askedProviders
}

// askedProviders remembers the methods that it was asked with.
type askedProviders struct {
	Providers
	with []*acl.AuthMethod
}

func (p *askedProviders) AuthURL(_ context.Context, m *acl.AuthMethod, _ acl.AuthURLRequest) (string, error) {
	p.with = append(p.with, m)
	return "https://login.example", nil
}

func newSealer(t *testing.T) *sealer {
	t.Helper()
	st := store.New()
	b := &sealer{t: t, store: st, log: &memoryLog{fsm: fsm.New(st, nil)}, asked: &askedProviders{}}
	quiet := slog.New(slog.DiscardHandler)
	b.keys = keyring.New(keyring.Config{}, keyring.Deps{
		Log: b.log, Store: st, Clock: clock.Wall{}, IDs: id.Random{}, Wrappers: []keyring.Wrapper{keyring.NewFiles("", "", nil)}, Wraps: 1,
		Logger: quiet,
	})
	b.vars = variables.New(variables.Deps{Log: b.log, Store: st, Keyring: b.keys, Clock: clock.Wall{}, IDs: id.Random{}, Logger: quiet})
	b.Access = New(Deps{Log: b.log, Store: st, Clock: clock.Wall{}, IDs: id.Random{}, Keyring: b.keys, Providers: b.asked})
	b.root = &rights.Caller{Token: &acl.Token{}, Rights: rights.Management()}
	b.rotate(false)
	return b
}

func (b *sealer) rotate(full bool) string {
	b.t.Helper()
	meta, _, err := b.keys.Rotate(b.t.Context(), secrets.Rotation{Full: full})
	require.NoError(b.t, err)
	return meta.KeyID
}

// used are the secrets that a login has.
func (b *sealer) used() acl.MethodSecrets {
	b.t.Helper()
	_, err := b.AuthURL(b.t.Context(), acl.AuthURLRequest{AuthMethodName: "sso"})
	require.NoError(b.t, err)
	return b.asked.with[len(b.asked.with)-1].Secrets()
}

// hides fails if a secret stands in what was written to the log, or in a snapshot.
func (b *sealer) hides() {
	b.t.Helper()
	var image bytes.Buffer
	require.NoError(b.t, snapshot.Of(b.store.Snapshot()).Write(&image))
	for what, text := range map[string][]byte{"log": b.log.texts.Bytes(), "snapshot": image.Bytes()} {
		require.NotContains(b.t, string(text), clientSecret, what)
		require.NotContains(b.t, string(text), pemKey, what)
	}
}

func sso() *acl.AuthMethod {
	return &acl.AuthMethod{
		Name: "sso", Type: acl.MethodOIDC, TokenLocality: acl.LocalTokens, MaxTokenTTL: acl.TTL(time.Hour), Config: &acl.AuthMethodConfig{
			OIDCDiscoveryURL: "https://sso.example", OIDCClientID: "drover", OIDCClientSecret: clientSecret,
			OIDCClientAssertion: &acl.ClientAssertion{
				KeySource: acl.KeyOfMethod, PrivateKey: &acl.ClientAssertionKey{PemKey: pemKey, KeyID: "k"},
			},
		},
	}
}

var both = acl.MethodSecrets{OIDCClientSecret: clientSecret, PemKey: pemKey}

// TestSecretsOfAuthMethodsAreSealed: neither the log nor a snapshot nor a reader has them, and a login has.
func TestSecretsOfAuthMethodsAreSealed(t *testing.T) {
	t.Parallel()
	b := newSealer(t)
	hidden := acl.MethodSecrets{OIDCClientSecret: acl.Redacted, PemKey: acl.Redacted}
	given := sso()
	made, _, err := b.PutAuthMethod(t.Context(), b.root, given)
	require.NoError(t, err)
	require.Equal(t, both, given.Secrets(), "what the caller has stays as it was")
	require.Equal(t, hidden, made.Secrets())
	require.Nil(t, made.Sealed)
	read, err := b.AuthMethod(b.root, "sso")
	require.NoError(t, err)
	require.Equal(t, made, read)
	b.hides()
	require.Equal(t, both, b.used())

	read.MaxTokenTTL = acl.TTL(time.Minute)
	_, _, err = b.PutAuthMethod(t.Context(), b.root, read)
	require.NoError(t, err, "who changes what was read keeps the secrets")
	require.Equal(t, both, b.used())
	_, _, err = b.PutAuthMethod(t.Context(), b.root, &acl.AuthMethod{Name: "sso", MaxTokenTTL: acl.TTL(time.Hour)})
	require.NoError(t, err, "and so does who says nothing of them")
	require.Equal(t, both, b.used())
	_, _, err = b.PutAuthMethod(t.Context(), b.root, &acl.AuthMethod{Name: "sso", Config: &acl.AuthMethodConfig{OIDCClientSecret: "new"}})
	require.NoError(t, err)
	require.Equal(t, acl.MethodSecrets{OIDCClientSecret: "new", PemKey: pemKey}, b.used(), "one alone is replaced")
	b.hides()

	other := sso()
	other.Name, other.Config.OIDCClientSecret = "other", acl.Redacted
	_, _, err = b.PutAuthMethod(t.Context(), b.root, other)
	require.ErrorContains(t, err, `Config.OIDCClientSecret: "redacted" stands for a secret that is there, and there is none: give it`)
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	other = sso()
	other.Name = "other"
	other.Sealed = b.store.Snapshot().AuthMethod("sso").Sealed
	_, _, err = b.PutAuthMethod(t.Context(), b.root, other)
	require.NoError(t, err)
	moved := *b.store.Snapshot().AuthMethod("sso")
	moved.Name = "other"
	_, err = b.Open(t.Context(), &moved)
	require.ErrorContains(t, err, "encrypted for something else", "what is one method's opens for no other one")
}

// TestRemovedRootKey: the secrets are gone with their key; who writes the method anew mends it.
func TestRemovedRootKey(t *testing.T) {
	t.Parallel()
	b := newSealer(t)
	_, _, err := b.PutAuthMethod(t.Context(), b.root, sso())
	require.NoError(t, err)
	old := b.store.Snapshot().AuthMethod("sso").Sealed.KeyID
	b.rotate(false)
	_, err = b.keys.Remove(t.Context(), old, false)
	require.ErrorContains(t, err, "the secrets of auth method sso are encrypted with it")
	_, err = b.keys.Remove(t.Context(), old, true)
	require.NoError(t, err)
	_, err = b.AuthURL(t.Context(), acl.AuthURLRequest{AuthMethodName: "sso"})
	require.ErrorContains(t, err, `auth-method "sso": its secrets cannot be decrypted, write it with them again`)
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	_, _, err = b.PutAuthMethod(t.Context(), b.root, sso())
	require.NoError(t, err)
	require.Equal(t, both, b.used())
}

// TestOldAuthMethodsAreSealed: a log of before has secrets in plain text. They work at once, nobody reads them, and the leader encrypts
// them; it does so again when all keys are rotated, and the old key can be removed then.
func TestOldAuthMethodsAreSealed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newSealer(t)
		_, _, err := b.log.Propose(t.Context(), &command.UpsertAuthMethods{Methods: []*acl.AuthMethod{sso()}})
		require.NoError(t, err)
		require.Equal(t, both, b.used())
		read, err := b.AuthMethod(b.root, "sso")
		require.NoError(t, err)
		require.Equal(t, acl.Redacted, read.Config.OIDCClientSecret)
		was := b.store.Snapshot().AuthMethod("sso")

		ctx, stop := context.WithCancel(t.Context())
		var loops sync.WaitGroup
		loops.Go(func() { b.Lead(ctx, slog.New(slog.DiscardHandler)) })
		loops.Go(func() { b.vars.Lead(ctx) })
		synctest.Wait()
		b.log.texts.Reset() // raft forgets what a snapshot holds
		b.hides()
		now := b.store.Snapshot().AuthMethod("sso")
		require.Equal(t, []uint64{was.CreateIndex, was.ModifyIndex}, []uint64{now.CreateIndex, now.ModifyIndex}, "logins under way go on")
		require.Equal(t, both, b.used())

		old := now.Sealed.KeyID
		fresh := b.rotate(true)
		synctest.Wait()
		now = b.store.Snapshot().AuthMethod("sso")
		require.Equal(t, fresh, now.Sealed.KeyID)
		require.Equal(t, secrets.Deprecated, b.store.Snapshot().RootKey(old).State)
		_, err = b.keys.Remove(t.Context(), old, false)
		require.NoError(t, err)
		require.Equal(t, both, b.used())
		b.hides()
		stop()
		loops.Wait()
	})
}

// TestResealingIsNoWrite: what was changed since it was read is not replaced.
func TestResealingIsNoWrite(t *testing.T) {
	t.Parallel()
	b := newSealer(t)
	_, _, err := b.PutAuthMethod(t.Context(), b.root, sso())
	require.NoError(t, err)
	was := b.store.Snapshot().AuthMethod("sso")
	_, _, err = b.PutAuthMethod(t.Context(), b.root, &acl.AuthMethod{Name: "sso", Config: &acl.AuthMethodConfig{OIDCClientSecret: "new"}})
	require.NoError(t, err)
	require.Equal(t, drover.Conflict, drover.CodeOf(b.reseal(t.Context(), was)))
	_, err = b.DeleteAuthMethods(t.Context(), b.root, "sso")
	require.NoError(t, err)
	require.Equal(t, drover.Conflict, drover.CodeOf(b.reseal(t.Context(), was)))
	require.Nil(t, b.store.Snapshot().AuthMethod("sso"))
}
