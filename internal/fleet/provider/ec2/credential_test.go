package ec2_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/provider/ec2"
	"github.com/drover-project/drover/internal/fleet/provider/ec2/ec2test"
)

func chain(t *testing.T, env map[string]string) *ec2.Chain {
	return ec2.NewChain(ec2.ChainConfig{Getenv: func(k string) string { return env[k] }, HTTP: client(t)}, clock.Wall{})
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "credentials")
	require.NoError(t, os.WriteFile(file, []byte("# mine\n[other]\naws_access_key_id = no\n\n[work]\naws_access_key_id=A\naws_secret_access_key = S=\naws_session_token = T\n[half]\naws_access_key_id = A\n"), 0o600))
	c := ec2test.New(t)
	t.Run("environment", func(t *testing.T) {
		t.Parallel()
		got, err := chain(t, map[string]string{"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "S", "AWS_SHARED_CREDENTIALS_FILE": file}).Get(t.Context())
		require.NoError(t, err)
		require.Equal(t, ec2.Credentials{AccessKey: "A", SecretKey: "S"}, got)
	})
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		got, err := chain(t, map[string]string{"AWS_SHARED_CREDENTIALS_FILE": file, "AWS_PROFILE": "work"}).Get(t.Context())
		require.NoError(t, err)
		require.Equal(t, ec2.Credentials{AccessKey: "A", SecretKey: "S=", SessionToken: "T"}, got)
		_, err = chain(t, map[string]string{"AWS_SHARED_CREDENTIALS_FILE": file, "AWS_PROFILE": "half"}).Get(t.Context())
		require.Equal(t, provider.Auth, provider.KindOf(err))
		require.ErrorContains(t, err, "aws_secret_access_key")
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		_, err := chain(t, map[string]string{"AWS_SHARED_CREDENTIALS_FILE": file, "AWS_EC2_METADATA_DISABLED": "true"}).Get(t.Context())
		require.Equal(t, provider.Auth, provider.KindOf(err))
		for _, where := range []string{"AWS_ACCESS_KEY_ID", file, "metadata"} {
			require.ErrorContains(t, err, where)
		}
	})
	t.Run("role", func(t *testing.T) {
		t.Parallel()
		source := chain(t, map[string]string{"AWS_EC2_METADATA_SERVICE_ENDPOINT": c.URL, "HOME": "/nowhere"})
		p := account(t, c, "me", func(cfg *ec2.Config) { cfg.Credentials = source })
		for range 3 {
			_, _, err := p.List(t.Context(), "")
			require.NoError(t, err)
		}
		require.Equal(t, 1, c.AskedRole, "they are kept while they are good")
		c.With(func(c *ec2test.Cloud) { c.Sessions["token-1"] = true })
		_, _, err := p.List(t.Context(), "")
		require.NoError(t, err, "those that were refused are fetched anew")
		require.Equal(t, 2, c.AskedRole)
	})
	t.Run("wrong", func(t *testing.T) {
		t.Parallel()
		for name, key := range map[string]ec2.Credentials{
			"AuthFailure": {AccessKey: "X", SecretKey: ec2test.SecretKey}, "SignatureDoesNotMatch": {AccessKey: ec2test.AccessKey, SecretKey: "x"},
		} {
			_, _, err := account(t, c, "me", func(cfg *ec2.Config) { cfg.Credentials = key }).List(t.Context(), "")
			require.Equal(t, provider.Auth, provider.KindOf(err))
			require.ErrorContains(t, err, name)
		}
	})
}
