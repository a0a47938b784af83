package signature

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

func public(t *testing.T, curve elliptic.Curve) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func TestParseKeys(t *testing.T) {
	t.Parallel()
	good := public(t, elliptic.P256())
	keys, err := ParseKeys([]string{good, "\n" + good + "\n"})
	require.NoError(t, err)
	require.Len(t, keys[0].ID, 16)
	require.Equal(t, []string{keys[0].ID, keys[0].ID}, IDs(keys))
	for text, want := range map[string]string{
		"":                         "no PEM block",
		"cosign.pub":               "no PEM block",
		public(t, elliptic.P384()): "another kind of key",
		strings.Repeat(" ", 2000):  "at most 1024 are read",
		good + good:                "something follows",
		strings.Replace(good, "PUBLIC KEY", "PRIVATE KEY", 2):        "a private key",
		strings.Replace(good, "PUBLIC KEY", "CERTIFICATE", 2):        `a PEM block of "CERTIFICATE"`,
		"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----": "cannot be read",
	} {
		_, err := ParseKeys([]string{good, text})
		require.ErrorContains(t, err, "key 2: ", text)
		require.ErrorContains(t, err, want, text)
		require.Equal(t, drover.Invalid, drover.CodeOf(err))
	}
}

// FuzzCovers: no payload panics, and none counts that does not have both texts in it.
func FuzzCovers(f *testing.F) {
	f.Add(`{"critical":{"identity":{"docker-reference":"a.io/b"},"image":{"docker-manifest-digest":"sha256:x"},` +
		`"type":"cosign container image signature"},"optional":{"a":[1,{"b":null}]}}`)
	f.Add(`{"critical":null}`)
	f.Add(`{"critical":{"identity":[],"image":7,"type":""}}`)
	repository, err := name.NewRepository("a.io/b")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, payload string) {
		if Covers([]byte(payload), repository, "sha256:x") == nil {
			require.Contains(t, payload, "critical")
			require.LessOrEqual(t, strings.Count(payload, `"critical"`), strings.Count(payload, "critical"))
		}
	})
}

func TestCovers(t *testing.T) {
	t.Parallel()
	hub, err := name.NewRepository("redis")
	require.NoError(t, err)
	for _, reference := range []string{"redis", "docker.io/library/redis", "index.docker.io/library/redis", "library/redis:8"} {
		payload := `{"critical":{"identity":{"docker-reference":"` + reference + `"},"image":{"docker-manifest-digest":"sha256:x"},` +
			`"type":"cosign container image signature"},"optional":null}`
		require.NoError(t, Covers([]byte(payload), hub, "sha256:x"), reference)
	}
	err = Covers([]byte(`{"critical":{"identity":{"docker-reference":""},"image":{"docker-manifest-digest":"sha256:x"},`+
		`"type":"cosign container image signature"}}`), hub, "sha256:x")
	require.Equal(t, drover.Forbidden, drover.CodeOf(err))
}
