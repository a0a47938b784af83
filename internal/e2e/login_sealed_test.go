package e2e

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/cap/oidc"
	"github.com/stretchr/testify/require"
)

// TestSecretsOfAuthMethodsOnTheDisk: neither the log, nor anything else of the data folder, nor a snapshot, nor an answer has the secrets
// of auth methods; a login after a restart has.
func TestSecretsOfAuthMethodsOnTheDisk(t *testing.T) {
	t.Parallel()
	const secret, pem = "s3cret-0f-the-client", "MIIEpem-0f-the-assertion"
	provider := oidc.StartTestProvider(t)
	provider.SetExpectedExpiry(time.Minute)
	provider.SetSubjectInfo(map[string]*oidc.TestSubject{"alice": {Password: "pass", CustomClaims: map[string]any{"groups": []string{"dev"}}}})
	provider.SetClientCreds("drover", secret)
	folder := t.TempDir()
	args := config(t, folder, loginAccess+clientBlock("  enabled = false\n")+"server {\n  enabled = true\n}\n")
	a := start(t, args...)
	root, _, err := a.nomad().ACLTokens().Bootstrap(nil)
	require.NoError(t, err)
	a.token = root.SecretID
	create := func(name string, c map[string]any, more ...string) {
		c["OIDCDiscoveryURL"], c["OIDCClientID"] = provider.Addr(), "drover"
		c["DiscoveryCaPem"], c["SigningAlgs"] = []string{provider.CACert()}, []string{"ES256"}
		c["ListClaimMappings"] = map[string]string{"groups": "groups"}
		text, err := json.Marshal(c)
		require.NoError(t, err)
		a.drover(string(text), append([]string{
			"acl", "auth-method", "create", "-name", name, "-type", "OIDC", "-token-locality", "local", "-max-token-ttl", "10m", "-config", "-",
		}, more...)...)
	}
	create("sso", map[string]any{"OIDCClientSecret": secret, "OIDCDisableUserInfo": true}, "-default")
	create("signed", map[string]any{"OIDCClientAssertion": map[string]any{
		"KeySource": "private_key", "PrivateKey": map[string]any{"PemKey": pem, "KeyID": "k"},
	}})
	a.drover(`namespace "default" { policy = "read" }`, "acl", "policy", "apply", "look", "-")
	a.drover("", "acl", "binding-rule", "create", "-auth-method", "sso", "-selector", "dev in list.groups", "-bind-type", "policy",
		"-bind-name", "look")
	m, _, err := a.nomad().ACLAuthMethods().Get("sso", nil)
	require.NoError(t, err)
	require.Equal(t, "redacted", m.Config.OIDCClientSecret)
	_, _, err = a.nomad().ACLAuthMethods().Update(m, nil) // as who edits what was read
	require.NoError(t, err)
	m, _, err = a.nomad().ACLAuthMethods().Get("signed", nil)
	require.NoError(t, err)
	require.Equal(t, "redacted", m.Config.OIDCClientAssertion.PrivateKey.PemKey)

	saved, err := a.nomad().Operator().Snapshot(nil)
	require.NoError(t, err)
	unpacked, err := gzip.NewReader(saved)
	require.NoError(t, err)
	archive, err := io.ReadAll(unpacked)
	require.NoError(t, err)
	require.NoError(t, saved.Close())
	require.Contains(t, string(archive), provider.Addr(), "it has the methods")
	hidden := func(what string, data []byte) {
		require.NotContains(t, string(data), secret, what)
		require.NotContains(t, string(data), pem, what)
	}
	hidden("archive", archive)
	a.Stop()
	found := false
	require.NoError(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		hidden(path, data)
		found = found || len(data) > 0
		return err
	}))
	require.True(t, found, "there are files")

	b := start(t, args...)
	out, code := b.login(provider, "alice", "pass")
	require.Zero(t, code, out)
	require.Contains(t, out, `"look"`)
	b.Stop()
}
