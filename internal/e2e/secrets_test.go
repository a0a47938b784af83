package e2e

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
)

// An execution on another machine gets secrets that its caller may read: in the environment and in a file, hidden in its output. Nobody
// gets others, and nothing that the servers and the node write down or say has a value.
func TestAnExecutionGetsSecrets(t *testing.T) {
	t.Parallel()
	const value = "correct-horse-battery-staple"
	dir := t.TempDir()
	const access = "acl {\n  enabled   = true\n  token_ttl = \"1s\"\n}\n"
	server := start(t, append([]string{"-server"}, config(t, filepath.Join(dir, "server"), access+"server {\n  enabled = true\n}\n")...)...)
	m := rpcOn.FindStringSubmatch(server.Output())
	require.NotNil(t, m)
	node := start(t, append([]string{"-client"}, config(t, filepath.Join(dir, "node"), access+clientBlock("servers = [\""+m[1]+"\"]"))...)...)
	root, _, err := server.nomad().ACLTokens().Bootstrap(nil)
	require.NoError(t, err)
	server.token = root.SecretID
	variable(t, server.nomad(), "app/db", map[string]string{"password": value})
	variable(t, server.nomad(), "app/other", map[string]string{"password": value})
	_, err = server.nomad().ACLPolicies().Upsert(&api.ACLPolicy{
		Name: "teacher", Rules: `namespace "default" {
  policy = "write"
  variables {
    path "app/db" { capabilities = ["read"] }
  }
}`,
	}, nil)
	require.NoError(t, err)
	token, _, err := server.nomad().ACLTokens().Create(&api.ACLToken{Type: "client", Policies: []string{"teacher"}}, nil)
	require.NoError(t, err)

	reader := server.nomad()
	reader.SetSecretID(token.SecretID)
	_, _, err = reader.Variables().Read("app/db", nil)
	require.NoError(t, err)
	manager, err := client.New("http://"+server.addr, client.WithToken(root.SecretID))
	require.NoError(t, err)
	_, _, err = manager.PutEnvironmentAndWait(t.Context(), execution.Environment{ID: "e", Image: "host", PoolSize: 1}, time.Minute)
	require.NoError(t, err)
	c, err := client.New("http://"+server.addr, client.WithToken(token.SecretID))
	require.NoError(t, err)
	request := execution.Request{
		Command: `echo "$PASSWORD" | cut -c1-7; echo "is $PASSWORD"; cat $DROVER_SECRETS_DIR/key; ` +
			`stat -c ' %a %U' $DROVER_SECRETS_DIR/key; id -un; cat`,
		Spec: execution.Spec{Secrets: []execution.Secret{
			{Path: "app/db", Key: "password", Env: "PASSWORD", Mask: true}, {Path: "app/db", Key: "password", File: "key", Mask: true},
		}},
	}
	request.Stdin = true
	r, err := c.Claim(t.Context(), execution.ClaimRequest{Environment: "e", Wait: time.Minute})
	require.NoError(t, err)
	session, err := c.Execute(t.Context(), r.ID, request)
	require.NoError(t, err)
	out, ended := "", false
	for n := 0; !ended; n++ {
		f, err := session.Next(t.Context())
		require.NoError(t, err)
		out += string(f.Data)
		if ended = f.Receipt != nil; strings.Count(out, "\n") == 4 && n >= 0 {
			clean(t, dir, value) // while it runs
			require.NoError(t, session.CloseStdin(t.Context()))
			n = -1 << 30
		}
		told, err := json.Marshal(f.Receipt)
		require.NoError(t, err)
		require.NotContains(t, string(told), value)
	}
	require.NoError(t, session.Close())
	require.Regexp(t, "^correct\nis \\*\\*\\*\n\\*\\*\\* 400 (\\w+)\n(\\w+)\n$", out)
	info, err := c.Executions(t.Context(), r.ID)
	require.NoError(t, err)
	told, err := json.Marshal(info)
	require.NoError(t, err)
	require.Contains(t, string(told), "app/db")
	require.NotContains(t, string(told), value)
	require.NoError(t, c.Release(t.Context(), r.ID))

	request.Secrets[1].Path = "app/other"
	_, err = c.Run(t.Context(), execution.RunRequest{Environment: "e", Wait: time.Minute, Request: request})
	require.Equal(t, drover.Forbidden, drover.CodeOf(err), "%v", err)

	for _, a := range []*agent{server, node} {
		require.NotContains(t, a.Output(), value)
	}
	clean(t, dir, value)
	require.NoError(t, manager.DeleteEnvironment(t.Context(), "e"))
	over(t, server.nomad())
}

// clean looks for the value in all files of the folder.
func clean(t *testing.T, dir, value string) {
	t.Helper()
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.Contains(path, "/proc/") {
			data, _ := os.ReadFile(path) // some come and go
			require.False(t, bytes.Contains(data, []byte(value)), path)
		}
		return nil
	})
}

// over waits until no allocation runs any more.
func over(t *testing.T, c *api.Client) {
	t.Helper()
	eventually(t, "the runners' end", func() (bool, string) {
		list, _, err := c.Allocations().List(nil)
		require.NoError(t, err)
		for _, a := range list {
			if a.ClientStatus != "complete" && a.ClientStatus != "failed" {
				return false, a.ID + " is " + a.ClientStatus
			}
		}
		return true, ""
	})
}
