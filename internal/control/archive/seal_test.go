package archive

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/aesgcm"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/secrets"
)

// kek wraps keys with a key that it has.
type kek struct{ key []byte }

func (k kek) WrapKey(_ context.Context, plain []byte) ([]secrets.Wrapped, error) {
	aead, err := aesgcm.New(k.key)
	if err != nil {
		return nil, err
	}
	return []secrets.Wrapped{{Provider: "aead", KeyID: "4711", Ciphertext: aead.Seal(nil, nil, plain, nil)}}, nil
}

func (k kek) UnwrapKey(_ context.Context, wrapped []secrets.Wrapped) ([]byte, error) {
	aead, err := aesgcm.New(k.key)
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nil, wrapped[0].Ciphertext, nil)
	if err != nil {
		return nil, drover.Errorf(drover.Unavailable, "its key cannot be unwrapped on this server")
	}
	return plain, nil
}

func keyed(t testing.TB, f *fsm.FSM, fill byte) *Archives {
	a := archives(t, f)
	a.deps.Keys = kek{bytes.Repeat([]byte{fill}, aesgcm.KeySize)}
	return a
}

// unpacked is an archive without its compression.
func unpacked(t testing.TB, data []byte) string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	plain, err := io.ReadAll(zip)
	require.NoError(t, err)
	return string(plain)
}

// TestAnEncryptedArchive: it says what it is to anybody, has nothing secret for who lacks the key-encryption key, and goes back where
// that is.
func TestAnEncryptedArchive(t *testing.T) {
	t.Parallel()
	f := machine(t)
	require.Contains(t, unpacked(t, saved(t, f)), "the node's secret", "what this test looks for")
	a := keyed(t, f, 1)
	var out bytes.Buffer
	m, err := a.Write(t.Context(), &out, true)
	require.NoError(t, err)
	data := out.Bytes()
	for _, secret := range []string{"the node's secret", "the fleet's key", "of a user", "PASSWORD"} {
		require.NotContains(t, unpacked(t, data), secret)
	}
	got, err := Inspect(bytes.NewReader(data))
	require.NoError(t, err)
	require.Equal(t, m.ID, got.ID)
	require.Equal(t, uint64(5), got.Index)
	require.Equal(t, sealedVersion, got.Version)
	require.Equal(t, "key 4711 of keyring aead", got.KeyNames())
	require.Empty(t, got.Tables)
	err = State(t.Context(), bytes.NewReader(data), io.Discard)
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	require.ErrorContains(t, err, "encrypted with key 4711 of keyring aead: only servers that have that key can read it")

	_, err = keyed(t, f, 2).Restore(t.Context(), bytes.NewReader(data), "")
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	require.ErrorContains(t, err, "encrypted with key 4711 of keyring aead: its key cannot be unwrapped")
	apply(t, f, &command.RegisterJob{Job: job("later")})
	_, err = a.Restore(t.Context(), bytes.NewReader(data), "")
	require.NoError(t, err)
	s := f.Store().Snapshot()
	require.Nil(t, s.Job("default", "later"))
	require.NotNil(t, s.Job("default", "web"))
	require.Equal(t, "the node's secret", s.Node("n1").SecretID)

	a.deps.Encrypt = true
	plainly, err := a.Save(t.Context(), false)
	require.NoError(t, err)
	require.NotEmpty(t, plainly.Key, "it is the rule")
	require.NoError(t, plainly.Close())
	a.deps.Keys = kek{}
	_, err = a.Save(t.Context(), false)
	require.ErrorContains(t, err, "encrypting the archive")
}

// TestPartsOfASealedState: whatever its length, a state comes out as it went in; a part that is missing, moved, changed or of another
// archive is seen.
func TestPartsOfASealedState(t *testing.T) {
	t.Parallel()
	key := bytes.Repeat([]byte{7}, sealKeySize)
	aead, err := sealing(key)
	require.NoError(t, err)
	seal := func(state []byte, id string) []byte {
		var out bytes.Buffer
		s := &sealer{out: &out, aead: aead, id: []byte(id)}
		for rest := state; len(rest) > 0; {
			n := min(len(rest), 50_000)
			_, err := s.Write(rest[:n])
			require.NoError(t, err)
			rest = rest[n:]
		}
		require.NoError(t, s.part(true))
		return out.Bytes()
	}
	open := func(text []byte) ([]byte, error) {
		return io.ReadAll(newOpener(bytes.NewReader(text), aead, "a"))
	}
	for _, n := range []int{0, 1, sealedPart - 1, sealedPart, sealedPart + 1, 2 * sealedPart, 3*sealedPart + 5} {
		state := bytes.Repeat([]byte("0123456789"), n/10+1)[:n]
		got, err := open(seal(state, "a"))
		require.NoError(t, err)
		require.True(t, bytes.Equal(state, got), "%d bytes", n)
	}
	whole := seal(bytes.Repeat([]byte("x"), 3*sealedPart), "a")
	const part = sealedPart + 16
	bad := map[string][]byte{
		"of another archive": seal([]byte("x"), "b"), "nothing": nil, "without its end": whole[:2*part], "torn": whole[:2*part+9],
		"without its beginning": whole[part:], "a part more": append(bytes.Clone(whole), whole[:part]...),
		"moved": bytes.Join([][]byte{whole[part : 2*part], whole[:part], whole[2*part:]}, nil),
	}
	for what, text := range bad {
		_, err := open(text)
		require.Equal(t, drover.Invalid, drover.CodeOf(err), what)
		require.ErrorContains(t, err, "does not open", what)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := bytes.Clone(whole)
		text[rapid.IntRange(0, len(text)-1).Draw(t, "byte")] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
		if _, err := open(text); drover.CodeOf(err) != drover.Invalid {
			t.Fatalf("a changed byte is not seen: %v", err)
		}
	})
	_, err = plain(t.Context(), cluster.Archive{Key: []secrets.Wrapped{{}}}, nil, shortKey{})
	require.ErrorContains(t, err, fmt.Sprintf("has 3 bytes, not %d", sealKeySize))
}

// shortKey unwraps a key that is none.
type shortKey struct{ Keys }

func (shortKey) UnwrapKey(context.Context, []secrets.Wrapped) ([]byte, error) {
	return []byte("abc"), nil
}
