package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/control/keyring/kms/kmstest"
)

// TestAKeyringMovesFromOneCloudToAnother: what AWS KMS wrapped is opened after a restart, is encrypted anew with what Google's service
// wraps, and is there when AWS is gone.
func TestAKeyringMovesFromOneCloudToAnother(t *testing.T) {
	t.Parallel()
	amazon, google := kmstest.Amazon(t), kmstest.Google(t)
	account := filepath.Join(t.TempDir(), "account.json")
	require.NoError(t, os.WriteFile(account, google.Account, 0o600))
	ofAmazon := fmt.Sprintf("keyring \"awskms\" {\n  active = %%t\n  region = %q\n  kms_key_id = %q\n"+
		"  access_key = %q\n  secret_key = %q\n  endpoint = %q\n}\n",
		kmstest.Region, kmstest.Alias, kmstest.AccessKey, kmstest.SecretKey, amazon.URL)
	ofGoogle := fmt.Sprintf("keyring \"gcpckms\" {\n  active = true\n  project = \"p\"\n  region = \"global\"\n  key_ring = \"r\"\n"+
		"  crypto_key = \"k\"\n  credentials = %q\n  endpoint = %q\n}\n", account, google.URL)
	data := filepath.Join(t.TempDir(), "data")
	begin := func(keyrings string) *agent {
		return start(t, append([]string{"-server"}, config(t, data, keyrings)...)...)
	}
	read := func(a *agent) {
		t.Helper()
		eventually(t, "the variable", func() (bool, string) {
			v, _, err := a.nomad().Variables().Read("app", nil)
			return err == nil && v.Items["password"] == "hunter2", fmt.Sprint(err)
		})
	}

	a := begin(fmt.Sprintf(ofAmazon, true))
	eventually(t, "the first root key", func() (bool, string) {
		_, _, err := a.nomad().Variables().Create(&api.Variable{Path: "app", Items: map[string]string{"password": "hunter2"}}, nil)
		return err == nil, fmt.Sprint(err)
	})
	require.GreaterOrEqual(t, amazon.Calls(), 2, "it wraps, and tries whether that can be unwrapped")
	a.End(syscall.SIGTERM)

	a = begin(fmt.Sprintf(ofAmazon, false) + ofGoogle)
	read(a)
	key, _, err := a.nomad().Keyring().Rotate(&api.KeyringRotateOptions{Full: true}, nil)
	require.NoError(t, err)
	eventually(t, "what was encrypted with the old key", func() (bool, string) {
		list, _, err := a.nomad().Keyring().List(nil)
		require.NoError(t, err)
		for _, k := range list {
			if k.State == "rekeying" {
				return false, k.KeyID
			}
		}
		return true, ""
	})
	a.End(syscall.SIGTERM)

	amazon.Close()
	a = begin(ofGoogle)
	read(a)
	list, _, err := a.nomad().Keyring().List(nil)
	require.NoError(t, err)
	for _, k := range list {
		require.Equal(t, k.KeyID == key.KeyID, k.State == "active")
	}
	shown, answer := a.request("GET", "/v1/agent/self", "")
	require.Equal(t, 200, shown)
	require.NotContains(t, answer, kmstest.SecretKey)
	a.End(syscall.SIGTERM)
}
