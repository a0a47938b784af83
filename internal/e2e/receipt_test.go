package e2e

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/e2e/program"
)

// TestSignedReceipt: a receipt is verified at the agent and with saved keys; still after a rotation, and with the saved keys alone once the
// key was removed; and not if somebody changed it.
func TestSignedReceipt(t *testing.T) {
	t.Parallel()
	a := dev(t)
	a.putEnvironment("7", 1)
	c := a.native()
	runner, err := c.Claim(t.Context(), execution.ClaimRequest{Environment: "7"})
	require.NoError(t, err)
	command := execution.Spec{Argv: []string{"/bin/sh", "-c", "echo ok; exit 3"}}
	x, err := c.StartExecution(t.Context(), runner.ID, execution.Request{Spec: command})
	require.NoError(t, err)
	_, err = c.WaitExecution(t.Context(), x.ID)
	require.NoError(t, err)
	folder := t.TempDir()
	receipt, keys, forged := filepath.Join(folder, "receipt"), filepath.Join(folder, "keys"), filepath.Join(folder, "forged")
	token := a.must("execution", "receipt", x.ID)
	require.NoError(t, os.WriteFile(receipt, []byte(token), 0o600))
	require.NoError(t, os.WriteFile(forged, []byte(strings.Replace(token, ".eyJ", ".eyA", 1)), 0o600))
	res, err := http.Get("http://" + a.addr + "/.well-known/jwks.json")
	require.NoError(t, err)
	set, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.NoError(t, os.WriteFile(keys, set, 0o600))

	online := a.must("execution", "verify", receipt)
	require.Regexp(t, `Verified +=? ?yes`, strings.ReplaceAll(online, "\t", " "))
	require.Contains(t, online, "/bin/sh -c echo ok; exit 3")
	require.Contains(t, online, "3 bytes of stdout, 0 of stderr")
	offline := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), program.Binary, append([]string{"execution", "verify"}, args...)...)
		cmd.Env = append(os.Environ(), "DROVER_ADDR=http://127.0.0.1:1")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := offline("-json", "-keys", keys, receipt)
	require.NoError(t, err, out)
	require.Contains(t, out, `"exitCode": 3`)
	out, err = offline("-keys", keys, forged)
	require.Error(t, err)
	require.Contains(t, out, "not verified")

	before := a.must("operator", "root", "keyring", "list", "-json")
	a.must("operator", "root", "keyring", "rotate", "-full")
	require.Equal(t, online, a.must("execution", "verify", receipt), "the old key is still published")
	newer := a.must("execution", "receipt", x.ID)
	require.NotEqual(t, strings.Split(token, ".")[0], strings.Split(newer, ".")[0], "the new key signs")
	_, id, _ := strings.Cut(before, `"KeyID": "`)
	id, _, _ = strings.Cut(id, `"`)
	eventually(t, "the old key is removed", func() (bool, string) {
		out, err := a.run("operator", "root", "keyring", "remove", "-force", id)
		return err == nil, out
	})
	out, err = a.run("execution", "verify", receipt)
	require.Error(t, err)
	require.Contains(t, out, "is none of the 2 that are published: it was removed")
	out, err = offline("-keys", keys, receipt)
	require.NoError(t, err, out)
}
