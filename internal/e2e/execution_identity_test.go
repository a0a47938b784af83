package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
	identities "github.com/drover-project/drover/internal/claims"
)

// reversed is how a command prints its token that is masked else.
func reversed(text string) string {
	letters := []byte(text)
	slices.Reverse(letters)
	return string(letters)
}

// TestIdentityOfAnExecution: a command gets a token that the published keys verify and that says which environment, runner and execution it
// is of; its output has none, and no other environment's commands get one.
func TestIdentityOfAnExecution(t *testing.T) {
	t.Parallel()
	a := dev(t)
	c := a.native()
	for id, grant := range map[string]*execution.IdentityGrant{"open": {Audience: []string{"vault"}, TTL: time.Hour}, "closed": nil} {
		env := execution.Environment{ID: id, Image: "host", PoolSize: 1, Identity: grant}
		_, full, err := c.PutEnvironmentAndWait(t.Context(), env, time.Minute)
		require.NoError(t, err)
		require.True(t, full)
	}
	out := a.must("run", "-identity", "TOKEN=vault", "-identity-file", "jwt=vault", "-limit-wall", "30s", "open", "--", "/bin/sh", "-c",
		`echo "$TOKEN"; cat "$DROVER_SECRETS_DIR/jwt"; echo; echo "$TOKEN" | rev; cut -d. -f3 "$DROVER_SECRETS_DIR/jwt"`)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 4, out)
	require.Equal(t, []string{"***", "***"}, lines[:2], "its output does not have it")
	res, err := http.Get("http://" + a.addr + "/.well-known/jwks.json")
	require.NoError(t, err)
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	var set jose.JSONWebKeySet
	require.NoError(t, json.Unmarshal(text, &set))
	said, err := identities.Verify(reversed(lines[2]), set.Keys)
	require.NoError(t, err)
	require.NoError(t, said.Check(time.Now(), 0))
	require.Equal(t, []string{"default", "open", "environment:global:default:open", "vault"},
		[]string{said.Tenant, said.Environment, said.Subject, said.Audience[0]})
	require.True(t, strings.HasPrefix(said.Runner, "open-"), said.Runner)
	require.NotEmpty(t, said.Execution)
	require.Equal(t, 90*time.Second, said.Expiry.Time().Sub(said.IssuedAt.Time()), "no longer than it may run, and a minute")

	out, err = a.run("run", "-identity", "TOKEN=vault", "closed", "--", "/bin/true")
	require.Error(t, err)
	require.Contains(t, out, `environment "closed" does not let its executions have identities`)
	out, err = a.run("run", "-identity", "TOKEN=aws", "open", "--", "/bin/true")
	require.Error(t, err)
	require.Contains(t, out, `for vault, not for "aws"`)
}

// TestIdentityOfAnExecutionIsGoodForNothingElse: this cluster takes it for nobody's, whatever it is shown to, and it is not had by another
// team, after its runner, or once it is not allowed any more.
func TestIdentityOfAnExecutionIsGoodForNothingElse(t *testing.T) {
	t.Parallel()
	a := start(t, append([]string{"-dev"}, config(t, "", "acl {\n  enabled = true\n}\n")...)...)
	root, _, err := a.nomad().ACLTokens().Bootstrap(nil)
	require.NoError(t, err)
	a.token = root.SecretID
	teams := tenants(t, a, "red", "blue")
	red, blue := teams[0].at(a), teams[1].at(a)
	env := execution.Environment{ID: "e", Image: "host", PoolSize: 1, Identity: &execution.IdentityGrant{Audience: []string{"vault"}}}
	_, full, err := red.PutEnvironmentAndWait(t.Context(), env, time.Minute)
	require.NoError(t, err)
	require.True(t, full)
	r, err := red.Claim(t.Context(), execution.ClaimRequest{Environment: "e", Wait: time.Minute})
	require.NoError(t, err)
	ask := func(c *client.Client, runner string) (string, error) {
		x, err := c.StartExecution(t.Context(), runner, execution.Request{Command: "printf %s $T | rev", Spec: execution.Spec{
			Detach: -1, Secrets: []execution.Secret{{Identity: "vault", Env: "T"}},
		}})
		if err != nil {
			return "", err
		}
		out, err := c.Output(t.Context(), x.ID, "stdout", 0)
		require.NoError(t, err)
		text, err := io.ReadAll(out)
		require.NoError(t, err)
		require.NoError(t, out.Close())
		return reversed(strings.TrimSpace(string(text))), nil
	}
	token, err := ask(red, r.ID)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(token, "."), token)

	_, err = ask(blue, r.ID)
	require.Equal(t, drover.Forbidden, drover.CodeOf(err), "another team")
	for _, target := range []string{
		"GET /v1/jobs?namespace=red", "GET /v1/rights", "GET /v1/acl/token/self", "GET /v1/var/nomad/jobs?namespace=red", "GET /v1/nodes",
		"GET /v1/runners?namespace=red", "GET /v1/environments/e?namespace=red", "PUT /v1/client/identity/renew", "GET /v1/agent/self",
		"GET /v1/services?namespace=red", "POST /v1/acl/login",
	} {
		method, path, _ := strings.Cut(target, " ")
		for _, header := range []string{"X-Nomad-Token", "X-Drover-Token", "Authorization"} {
			req, err := http.NewRequestWithContext(t.Context(), method, "http://"+a.addr+path, strings.NewReader("{}"))
			require.NoError(t, err)
			req.Header.Set(header, map[bool]string{true: "Bearer "}[header == "Authorization"]+token)
			res, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			_ = res.Body.Close()
			require.GreaterOrEqual(t, res.StatusCode, 400, target)
		}
	}
	env.Identity = nil
	_, _, err = red.PutEnvironmentAndWait(t.Context(), env, time.Minute)
	require.NoError(t, err)
	_, err = ask(red, r.ID)
	require.ErrorContains(t, err, "does not let its executions have identities")
	require.NoError(t, red.Release(t.Context(), r.ID))
	_, err = ask(red, r.ID)
	require.Contains(t, []drover.Code{drover.Gone, drover.NotFound}, drover.CodeOf(err))
}
