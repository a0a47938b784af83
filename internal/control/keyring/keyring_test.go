package keyring

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/secrets"
)

// memoryLog applies at once.
type memoryLog struct {
	mu     sync.Mutex
	fsm    *fsm.FSM
	index  uint64
	texts  [][]byte // what was written
	refuse error
}

func (l *memoryLog) Propose(_ context.Context, c command.Command) (uint64, any, error) {
	data, err := command.Encode(c)
	if err != nil {
		return 0, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuse != nil {
		return 0, nil, l.refuse
	}
	l.index++
	l.texts = append(l.texts, data)
	result, err := l.fsm.Apply(l.index, data)
	return l.index, result, err
}

type bundle struct {
	*Keyring
	log    *memoryLog
	store  *store.Store
	logged *bytes.Buffer
}

// setup is a keyring with the wrappers, all of which wrap; Files in memory where there are none.
func setup(cfg Config, wrappers ...Wrapper) *bundle {
	if wrappers == nil {
		wrappers = []Wrapper{NewFiles("", "", nil)}
	}
	b := &bundle{store: store.New(), logged: &bytes.Buffer{}}
	b.log = &memoryLog{fsm: fsm.New(b.store, nil)}
	b.Keyring = b.beside(cfg, wrappers...)
	return b
}

// beside is another server's keyring over the same state.
func (b *bundle) beside(cfg Config, wrappers ...Wrapper) *Keyring {
	return New(cfg, Deps{
		Log: b.log, Store: b.store, Clock: clock.Wall{}, IDs: id.Random{}, Wrappers: wrappers, Wraps: len(wrappers),
		Logger: slog.New(slog.NewTextHandler(b.logged, nil)),
	})
}

func (b *bundle) rotate(t *testing.T, r secrets.Rotation) *secrets.RootKeyMeta {
	t.Helper()
	k, _, err := b.Rotate(t.Context(), r)
	require.NoError(t, err)
	return k
}

func (b *bundle) states() map[string]secrets.RootKeyState {
	out := map[string]secrets.RootKeyState{}
	for _, k := range b.Keys() {
		out[k.KeyID] = k.State
	}
	return out
}

func TestWhatIsSealedOpensForItsPurposeOnly(t *testing.T) {
	t.Parallel()
	b := setup(Config{})
	first := b.rotate(t, secrets.Rotation{})
	keyID, text, err := b.Seal(t.Context(), []byte("s3cret"), "default/a")
	require.NoError(t, err)
	require.Equal(t, first.KeyID, keyID)
	require.NotContains(t, string(text), "s3cret")
	b.rotate(t, secrets.Rotation{})
	plain, err := b.Open(t.Context(), keyID, text, "default/a")
	require.NoError(t, err)
	require.Equal(t, "s3cret", string(plain))

	_, err = b.Open(t.Context(), keyID, text, "default/b")
	require.Equal(t, drover.Internal, drover.CodeOf(err))
	for i := range text {
		damaged := bytes.Clone(text)
		damaged[i] ^= 1
		_, err = b.Open(t.Context(), keyID, damaged, "default/a")
		require.Error(t, err)
	}
	_, err = b.Open(t.Context(), keyID, text[:5], "default/a")
	require.Error(t, err)
}

func TestTokensVerifyWithThePublishedKeys(t *testing.T) {
	t.Parallel()
	b := setup(Config{})
	b.rotate(t, secrets.Rotation{})
	old, oldKey, err := b.Sign(t.Context(), map[string]any{"sub": "me"})
	require.NoError(t, err)
	active := b.rotate(t, secrets.Rotation{})
	token, keyID, err := b.Sign(t.Context(), struct {
		Subject string `json:"sub"`
	}{"me"})
	require.NoError(t, err)
	require.Equal(t, active.KeyID, keyID)
	receipt, receiptKey, err := b.SignBytes(t.Context(), jose.EdDSA, "receipt", []byte("text"))
	require.NoError(t, err)
	_, _, err = b.Sign(t.Context(), "no object")
	require.Equal(t, drover.Invalid, drover.CodeOf(err))

	published, err := json.Marshal(jose.JSONWebKeySet{Keys: b.PublicKeys()})
	require.NoError(t, err)
	require.NotContains(t, string(published), `"d":`, "private parts")
	var set jose.JSONWebKeySet
	require.NoError(t, json.Unmarshal(published, &set))
	require.Len(t, set.Keys, 4)
	require.Equal(t, active.KeyID, set.Keys[0].KeyID, "the active key is the first")
	for _, c := range []struct{ token, key, payload string }{
		{old, oldKey, `{"sub":"me"}`}, {token, keyID, `{"sub":"me"}`}, {receipt, receiptKey, "text"},
	} {
		parsed, err := jose.ParseSigned(c.token, []jose.SignatureAlgorithm{jose.RS256, jose.EdDSA})
		require.NoError(t, err)
		require.Equal(t, c.key, parsed.Signatures[0].Header.KeyID)
		found := set.Key(c.key)
		require.Len(t, found, 1)
		payload, err := parsed.Verify(found[0].Key)
		require.NoError(t, err)
		require.Equal(t, c.payload, string(payload))
		switch key := found[0].Key.(type) {
		case *rsa.PublicKey:
			require.Equal(t, 2048, key.N.BitLen())
		case ed25519.PublicKey:
		default:
			t.Fatalf("a key is %T", key)
		}
	}
}

// TestNoKeyInClearText looks for the keys in all that is written: log, snapshot and what the program logs.
func TestNoKeyInClearText(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "keyring")
	b := setup(Config{}, NewFiles("", folder, nil))
	k := b.rotate(t, secrets.Rotation{})
	_, _, err := b.Seal(t.Context(), []byte("s3cret"), "a")
	require.NoError(t, err)
	o := b.remembered(k.KeyID)
	var written bytes.Buffer
	require.NoError(t, b.log.fsm.Snapshot(&written))
	for _, text := range b.log.texts {
		written.Write(text)
	}
	written.Write(b.logged.Bytes())
	all := written.String()
	require.Contains(t, all, k.KeyID)
	for _, secret := range [][]byte{o.rsa.D.Bytes(), o.rsa.Primes[0].Bytes(), o.ed.Seed()} {
		require.NotContains(t, all, string(secret))
	}
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, files, 1)
	info, err := files[0].Info()
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	kek, err := os.ReadFile(filepath.Join(folder, files[0].Name()))
	require.NoError(t, err)
	raw, err := ParseKey(string(kek))
	require.NoError(t, err)
	require.NotContains(t, all, string(raw))
	require.NotContains(t, all, strings.TrimSpace(string(kek)))

	// A server that starts again has what it needs.
	again := b.beside(Config{}, NewFiles("", folder, nil))
	_, _, err = again.Sign(t.Context(), map[string]string{})
	require.NoError(t, err)
	damaged := strings.Replace(string(kek), string(kek[3]), "x", 1)
	require.NoError(t, os.WriteFile(filepath.Join(folder, files[0].Name()), []byte(damaged), 0o600))
	_, _, err = b.beside(Config{}, NewFiles("", folder, nil)).Sign(t.Context(), map[string]string{})
	require.ErrorContains(t, err, "is damaged")
}

// otherServer is another server's wrapper, over the network.
type otherServer struct {
	files *Files
	err   error
}

func (o *otherServer) KeyEncryptionKey(_ context.Context, id string) ([]byte, error) {
	if o.err != nil {
		return nil, o.err
	}
	return o.files.Own(id)
}

func TestServersGetWhatTheyNeedOfOthers(t *testing.T) {
	t.Parallel()
	first := NewFiles("", t.TempDir(), nil)
	b := setup(Config{}, first)
	b.rotate(t, secrets.Rotation{})
	keyID, text, err := b.Seal(t.Context(), []byte("s3cret"), "a")
	require.NoError(t, err)

	folder := t.TempDir()
	other := &otherServer{first, drover.Errorf(drover.Unavailable, "server one does not answer")}
	joined := b.beside(Config{}, NewFiles("", folder, other))
	_, err = joined.Open(t.Context(), keyID, text, "a")
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	require.ErrorContains(t, err, "server one does not answer")
	other.err = nil
	plain, err := joined.Open(t.Context(), keyID, text, "a")
	require.NoError(t, err)
	require.Equal(t, "s3cret", string(plain))
	other.err = errors.New("gone for good")
	_, err = b.beside(Config{}, NewFiles("", folder, other)).Open(t.Context(), keyID, text, "a")
	require.NoError(t, err, "it has kept the key")

	wrong := &otherServer{NewFiles("", "", nil), nil}
	wrong.files.keys[b.store.Snapshot().RootKey(keyID).Wrapped[0].KeyID] = make([]byte, kekSize)
	_, err = b.beside(Config{}, NewFiles("", "", wrong)).Open(t.Context(), keyID, text, "a")
	require.ErrorContains(t, err, "gave another key", "what another server says is checked")
	_, err = first.Own("../../etc/passwd")
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
}

// A restore into new servers without the key-encryption key: they say which root keys they cannot use, until somebody gives it to them.
func TestAServerSaysWhatIsLocked(t *testing.T) {
	t.Parallel()
	first := NewFiles("", t.TempDir(), nil)
	b := setup(Config{}, first)
	b.rotate(t, secrets.Rotation{})
	other := &otherServer{first, drover.Errorf(drover.Unavailable, "no server has it")}
	restored := b.beside(Config{}, NewFiles("", t.TempDir(), other))
	require.Equal(t, again, restored.unwrapAll(t.Context(), b.store.Snapshot()))
	locked := restored.Locked()
	require.Len(t, locked, 1)
	for row := range b.store.Snapshot().RootKeys() {
		require.Contains(t, locked[row.KeyID], "no server has it")
	}
	other.err = nil
	require.Equal(t, clock.Forever, restored.unwrapAll(t.Context(), b.store.Snapshot()))
	require.Empty(t, restored.Locked())
}

func TestAnyOfSeveralWrappersOpens(t *testing.T) {
	t.Parallel()
	given, err := NewFixed("given", strings.Repeat("ab", 32))
	require.NoError(t, err)
	b := setup(Config{}, given, NewFiles("own", "", nil))
	b.rotate(t, secrets.Rotation{})
	keyID, text, err := b.Seal(t.Context(), []byte("s3cret"), "a")
	require.NoError(t, err)
	same, err := NewFixed("", strings.Repeat("AB", 32))
	require.NoError(t, err)
	_, err = b.beside(Config{}, same).Open(t.Context(), keyID, text, "a")
	require.NoError(t, err)
	_, err = given.Own(given.fixed)
	require.Equal(t, drover.NotFound, drover.CodeOf(err), "operators give it, servers do not")
	other, err := NewFixed("", strings.Repeat("cd", 32))
	require.NoError(t, err)
	_, err = b.beside(Config{}, other).Open(t.Context(), keyID, text, "a")
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	_, err = NewFixed("", "secret")
	require.ErrorContains(t, err, "32 random bytes")
	require.NotContains(t, err.Error(), `"secret"`)
}

func TestRotationMovesStates(t *testing.T) {
	t.Parallel()
	b := setup(Config{})
	one := b.rotate(t, secrets.Rotation{}).KeyID
	require.Equal(t, map[string]secrets.RootKeyState{one: secrets.Active}, b.states())
	two := b.rotate(t, secrets.Rotation{}).KeyID
	require.Equal(t, map[string]secrets.RootKeyState{one: secrets.Inactive, two: secrets.Active}, b.states())
	three := b.rotate(t, secrets.Rotation{Full: true}).KeyID
	require.Equal(t, map[string]secrets.RootKeyState{one: secrets.Rekeying, two: secrets.Rekeying, three: secrets.Active}, b.states())
	four := b.rotate(t, secrets.Rotation{Publish: time.Now().Add(time.Hour)})
	require.Equal(t, secrets.Prepublished, four.State)
	keyID, _, err := b.Seal(t.Context(), nil, "")
	require.NoError(t, err)
	require.Equal(t, three, keyID, "a prepublished key is not used")

	for name, r := range map[string]secrets.Rotation{
		"algo": {Algorithm: "rot13"}, "full and publish_time": {Full: true, Publish: time.Now().Add(time.Hour)},
		"publish_time": {Publish: time.Now().Add(-time.Hour)},
	} {
		_, _, err := b.Rotate(t.Context(), r)
		require.Equal(t, drover.Invalid, drover.CodeOf(err))
		require.ErrorContains(t, err, name)
	}
	_, err = b.Remove(t.Context(), three, true)
	require.ErrorContains(t, err, "is active")
	_, err = b.Remove(t.Context(), "x", false)
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	_, err = b.Remove(t.Context(), id.Random{}.New(), false)
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
	_, err = b.Remove(t.Context(), one, false)
	require.NoError(t, err)
	require.Len(t, b.Keys(), 3)
}

// TestAKeyOfLiveIdentitiesIsKept: an allocation that runs may show what a retired key signed.
func TestAKeyOfLiveIdentitiesIsKept(t *testing.T) {
	t.Parallel()
	b := setup(Config{})
	one := b.rotate(t, secrets.Rotation{}).KeyID
	alloc := &drover.Allocation{ID: "a", Namespace: "default", JobID: "j", NodeID: "n", ClientStatus: "running", DesiredStatus: "run"}
	b.put(func(txn *store.Txn, index uint64) { alloc.CreateIndex = index; txn.PutAllocation(alloc) })
	b.rotate(t, secrets.Rotation{})
	_, err := b.Remove(t.Context(), one, false)
	require.Equal(t, drover.Conflict, drover.CodeOf(err))
	require.ErrorContains(t, err, "allocation a may have identities")
	require.NoError(t, b.collect(t.Context()))
	require.Contains(t, b.states(), one)
	ended := *alloc
	ended.ClientStatus, ended.DesiredStatus = "complete", "stop"
	b.put(func(txn *store.Txn, _ uint64) { txn.PutAllocation(&ended) })
	_, err = b.Remove(t.Context(), one, false)
	require.NoError(t, err)
}

// put changes the state as an entry of the log would.
func (b *bundle) put(change func(txn *store.Txn, index uint64)) {
	b.log.mu.Lock()
	defer b.log.mu.Unlock()
	b.log.index++
	txn := b.store.Begin(b.log.index)
	change(txn, b.log.index)
	txn.Commit()
}

// TestTheLeaderKeepsTheKeyring: the first key comes once the version allows it, rotation by time tells of the new key before it is used,
// and what nothing needs goes.
func TestTheLeaderKeepsTheKeyring(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		folder := filepath.Join(t.TempDir(), "keyring")
		b := setup(Config{RotateAfter: 24 * time.Hour, KeepFor: 2 * time.Hour, CollectEach: 10 * time.Minute}, NewFiles("", folder, nil))
		ctx, stop := context.WithCancel(t.Context())
		var loops sync.WaitGroup
		loops.Go(func() { b.Lead(ctx) })
		loops.Go(func() { _ = b.Run(ctx) })
		synctest.Wait()
		_, _, err := b.Sign(ctx, map[string]string{})
		require.ErrorContains(t, err, "no key yet")
		require.NoDirExists(t, folder, "nothing is made that the cluster cannot have yet")
		_, _, err = b.log.Propose(ctx, &command.RaiseVersion{Version: 3})
		require.NoError(t, err)
		synctest.Wait()
		require.Len(t, b.Keys(), 1)
		one := b.Keys()[0].KeyID
		require.NotNil(t, b.remembered(one), "it is ready before it is asked for")

		time.Sleep(24*time.Hour + 10*time.Minute)
		synctest.Wait()
		require.Equal(t, secrets.Active, b.states()[one])
		require.Len(t, b.Keys(), 2)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, secrets.Inactive, b.states()[one])
		time.Sleep(2*time.Hour + 20*time.Minute)
		synctest.Wait()
		require.Len(t, b.Keys(), 1)
		require.Equal(t, secrets.Active, b.Keys()[0].State)
		require.Nil(t, b.remembered(one), "what was removed is forgotten")
		stop()
		loops.Wait()
	})
}

// TestRefusedTriesLeaveNoKeyEncryptionKey: of tries that are refused no file stays beside that of the one which is not.
func TestRefusedTriesLeaveNoKeyEncryptionKey(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "keyring")
	b := setup(Config{}, NewFiles("", folder, nil))
	b.log.refuse = drover.Errorf(drover.Unavailable, "no leader")
	for range 2 {
		_, _, err := b.Rotate(t.Context(), secrets.Rotation{})
		require.ErrorContains(t, err, "no leader")
	}
	b.log.refuse = nil
	meta := b.rotate(t, secrets.Rotation{})
	b.rotate(t, secrets.Rotation{})
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.Equal(t, b.store.Snapshot().RootKey(meta.KeyID).Wrapped[0].KeyID+".key", files[0].Name())
}

// BenchmarkSignReceipt is what one signed receipt costs who asks for it.
func BenchmarkSignReceipt(b *testing.B) {
	w := setup(Config{})
	_, _, err := w.Rotate(b.Context(), secrets.Rotation{})
	require.NoError(b, err)
	payload := bytes.Repeat([]byte("x"), 600)
	for b.Loop() {
		_, _, err := w.SignBytes(b.Context(), jose.EdDSA, "receipt", payload)
		require.NoError(b, err)
	}
}
