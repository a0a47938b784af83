package keyring

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/keyring/kms"
	"github.com/drover-project/drover/internal/control/keyring/kms/kmstest"
	"github.com/drover-project/drover/secrets"
)

// TestFromOneCloudToAnother: both blocks wrap, then the new one alone does; what is sealed stays readable all the way, also while the old
// service does not answer.
func TestFromOneCloudToAnother(t *testing.T) {
	t.Parallel()
	amazon, google := kmstest.Amazon(t), kmstest.Google(t)
	deps := kms.Deps{Clock: clock.Wall{}}
	former := kms.NewAWS(kms.AWS{
		Region: kmstest.Region, Key: kmstest.Alias, Endpoint: amazon.URL, Credentials: kms.StaticAWS(kmstest.AccessKey, kmstest.SecretKey, ""),
	}, deps)
	next, err := kms.NewGoogle(kms.Google{
		Project: "p", Region: "global", KeyRing: "r", CryptoKey: "k", Endpoint: google.URL, Metadata: google.Host(),
	}, deps)
	require.NoError(t, err)

	b := setup(Config{}, former)
	_, _, err = b.Keyring.put(t.Context(), secrets.Rotation{}, true)
	require.NoError(t, err)
	key, text, err := b.Seal(t.Context(), []byte("a secret"), "test")
	require.NoError(t, err)

	_, err = b.beside(Config{}, next).Open(t.Context(), key, text, "test")
	require.ErrorContains(t, err, `no keyring "awskms" in its configuration`)

	both := b.beside(Config{}, former, next)
	plain, err := both.Open(t.Context(), key, text, "test")
	require.NoError(t, err)
	require.Equal(t, "a secret", string(plain))
	meta, _, err := both.Rotate(t.Context(), secrets.Rotation{})
	require.NoError(t, err)
	require.Len(t, b.store.Snapshot().RootKey(meta.KeyID).Wrapped, 2)
	newKey, newText, err := both.Seal(t.Context(), []byte("another secret"), "test")
	require.NoError(t, err)
	require.Equal(t, meta.KeyID, newKey)

	// The old service is gone: what both wrapped opens, what it alone wrapped does not, and no key is made that only one could open.
	amazon.Close()
	both = b.beside(Config{}, former, next)
	plain, err = both.Open(t.Context(), newKey, newText, "test")
	require.NoError(t, err)
	require.Equal(t, "another secret", string(plain))
	_, err = both.Open(t.Context(), key, text, "test")
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	require.ErrorContains(t, err, "keyring awskms")
	_, _, err = both.Rotate(t.Context(), secrets.Rotation{})
	require.ErrorContains(t, err, `wrapping a key with keyring "awskms"`)

	alone := b.beside(Config{}, next)
	_, _, err = alone.Rotate(t.Context(), secrets.Rotation{})
	require.NoError(t, err)
	plain, err = alone.Open(t.Context(), newKey, newText, "test")
	require.NoError(t, err)
	require.Equal(t, "another secret", string(plain))
}
