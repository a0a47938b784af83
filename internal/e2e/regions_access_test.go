package e2e

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/cap/oidc"
	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// What both regions of TestAccessControlOfRegions know.
const (
	regionsSecret = "s3cret-0f-both-regions"               // of the auth method
	regionsRoot   = "6b8d1c3e-5f0a-4c7d-9e2b-1a3f5d7c9e0b" // the management token, with which the other region asks, too
)

// TestAccessControlOfRegions: policies, roles, global tokens, auth methods, binding rules and admission rules are written in the
// authoritative region, from whichever one is asked. They hold in the other, also while the authoritative one is gone. What is
// revoked there is revoked here once it is back. Secrets of auth methods are in no file, and local tokens stay where they are.
func TestAccessControlOfRegions(t *testing.T) {
	t.Parallel()
	provider := oidc.StartTestProvider(t)
	provider.SetExpectedExpiry(time.Minute)
	provider.SetSubjectInfo(map[string]*oidc.TestSubject{"alice": {Password: "pass", CustomClaims: map[string]any{"groups": []string{"dev"}}}})
	provider.SetClientCreds("drover", regionsSecret)
	dir, port := t.TempDir(), freePort(t)
	block := func(more string) string {
		return "acl {\n  enabled = true\n  login_allow = [\"127.0.0.0/8\"]\n" + more + "}\n" +
			"server {\n  encrypt = \"MDEyMzQ1Njc4OWFiY2RlZg==\"\n  authoritative_region = \"global\"\n}\n"
	}
	first := append([]string{"-server", "-node", "g0", "-serf-port", port}, config(t, filepath.Join(dir, "g"), block(""))...)
	global := start(t, first...)
	west := start(t, append([]string{
		"-server", "-bootstrap-expect", "1", "-node", "w0", "-region", "west", "-serf-port", freePort(t), "-retry-join", "127.0.0.1:" + port,
		"-retry-interval", "1s",
	}, config(t, filepath.Join(dir, "w"), block(fmt.Sprintf("  replication_token = %q\n", regionsRoot)))...)...)

	looks, role := shareAccess(t, global, west, provider)
	w := west.nomad()
	local, _, err := w.ACLTokens().Create(&api.ACLToken{Type: "client", Policies: []string{"look"}}, nil)
	require.NoError(t, err)
	require.ErrorContains(t, global.reads(local.SecretID), "403")

	global.PullThePlug()
	require.NoError(t, west.reads(looks.SecretID), "the last state serves")
	require.NoError(t, west.reads(local.SecretID))
	out, code := west.login(provider, "alice", "pass")
	require.Zero(t, code, out)
	require.Contains(t, out, role.ID)
	_, err = w.ACLPolicies().Upsert(&api.ACLPolicy{Name: "orphan", Rules: `agent { policy = "read" }`}, nil)
	require.Error(t, err)

	global = start(t, first...)
	global.token = regionsRoot
	eventually(t, "revoked", func() (bool, string) {
		_, err := global.nomad().ACLTokens().Delete(looks.AccessorID, nil)
		return err == nil, fmt.Sprint(err)
	})
	_, err = global.nomad().ACLPolicies().Delete("look", nil)
	require.NoError(t, err)
	eventually(t, "revoked in the other region, too", func() (bool, string) {
		gone := west.reads(looks.SecretID)
		_, _, policy := w.ACLPolicies().Info("look", nil)
		return gone != nil && policy != nil, fmt.Sprint(gone, policy)
	})
	_, _, err = w.ACLTokens().Info(local.AccessorID, nil)
	require.NoError(t, err, "it is this region's own")

	west.Stop()
	require.NoError(t, filepath.WalkDir(filepath.Join(dir, "w"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		require.NotContains(t, string(data), regionsSecret, path)
		return err
	}))
}

// reads lists jobs with the token.
func (a *agent) reads(token string) error {
	c := a.nomad()
	c.SetSecretID(token)
	_, _, err := c.Jobs().List(nil)
	return err
}

// shareAccess bootstraps access control and writes some of each kind, from either region, and waits until west has it. It returns a global
// token of a role.
func shareAccess(t *testing.T, global, west *agent, provider *oidc.TestProvider) (*api.ACLToken, *api.ACLRole) {
	t.Helper()
	eventually(t, "bootstrap, through the other region", func() (bool, string) {
		_, _, err := west.nomad().ACLTokens().BootstrapOpts(regionsRoot, nil)
		return err == nil, fmt.Sprint(err)
	})
	global.token, west.token = regionsRoot, regionsRoot
	eventually(t, "the token is known in the other region", func() (bool, string) {
		self, _, err := west.nomad().ACLTokens().Self(nil)
		return err == nil && self.Global, fmt.Sprint(err)
	})
	w := west.nomad()
	_, err := w.ACLPolicies().Upsert(&api.ACLPolicy{Name: "look", Rules: `namespace "default" { policy = "read" }`}, nil)
	require.NoError(t, err)
	role, _, err := w.ACLRoles().Create(&api.ACLRole{Name: "lookers", Policies: []*api.ACLRolePolicyLink{{Name: "look"}}}, nil)
	require.NoError(t, err)
	looks, _, err := w.ACLTokens().Create(&api.ACLToken{Type: "client", Global: true, Roles: []*api.ACLTokenRoleLink{{ID: role.ID}}}, nil)
	require.NoError(t, err)
	there, _, err := global.nomad().ACLTokens().Info(looks.AccessorID, nil)
	require.NoError(t, err, "it was written there")
	require.Equal(t, looks.SecretID, there.SecretID)
	text, err := json.Marshal(map[string]any{
		"OIDCDiscoveryURL": provider.Addr(), "OIDCClientID": "drover", "OIDCClientSecret": regionsSecret, "OIDCDisableUserInfo": true,
		"DiscoveryCaPem": []string{provider.CACert()}, "SigningAlgs": []string{"ES256"},
		"ListClaimMappings": map[string]string{"groups": "groups"},
	})
	require.NoError(t, err)
	global.drover(string(text), "acl", "auth-method", "create", "-name", "sso", "-type", "OIDC", "-token-locality", "local",
		"-max-token-ttl", "10m", "-default", "-config", "-")
	global.drover("", "acl", "binding-rule", "create", "-auth-method", "sso", "-selector", "dev in list.groups", "-bind-type", "role",
		"-bind-name", "lookers")
	west.drover("rule \"small\" {\n  max = { MemoryMB = 64 }\n}\n", "admission", "put", "-")
	eventually(t, "everything came over", func() (bool, string) {
		_, _, noMethod := w.ACLAuthMethods().Get("sso", nil)
		rules, _, noRules := w.ACLBindingRules().List(nil)
		_, _, admitted := w.Jobs().Register(serversJob("large"), nil)
		refused := west.reads(looks.SecretID)
		return refused == nil && noMethod == nil && len(rules) == 1 && admitted != nil, fmt.Sprint(refused, noMethod, noRules, rules, admitted)
	})
	return looks, role
}
