package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKeyringBlocks: each provider has keys of its own, and says which it lacks.
func TestKeyringBlocks(t *testing.T) {
	for _, variable := range []string{
		"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_KMS_ENDPOINT", "GOOGLE_PROJECT", "GOOGLE_REGION", "VAULT_ADDR", "AZURE_CLIENT_SECRET",
	} {
		t.Setenv(variable, "")
	}
	for block, want := range map[string]string{
		`keyring "awskms" {
  region = "eu-central-1"
  kms_key_id = "alias/x"
}`: "",
		`keyring "awskms" {}`: "region: must be the region of the key|kms_key_id: must be",
		`keyring "awskms" {
  region = "r"
  kms_key_id = "k"
  access_key = "a"
  crypto_key = "c"
}`: `access_key and secret_key: give both or none|crypto_key: this provider has no such key, it has region`,
		`keyring "awskms" {
  region = "r"
  kms_key_id = "k"
  endpoint = "http://kms.example.com"
}`: "endpoint: must be a URL that begins with https://",
		`keyring "awskms" {
  region = "r"
  kms_key_id = "k"
  endpoint = "http://127.0.0.1:4566"
}`: "",
		`keyring "gcpckms" {
  project = "p"
  region = "global"
  key_ring = "r"
  crypto_key = "c"
}`: "",
		`keyring "gcpckms" { key_ring = "r" }`: "project: must be|region: must be|crypto_key: must be",
		`keyring "azurekeyvault" {
  vault_name = "v"
  key_name = "k"
}`: "",
		`keyring "azurekeyvault" {
  vault_name = "v"
  key_name = "k"
  client_secret = "s"
}`: "tenant_id: must be|client_id: must be",
		`keyring "transit" { key_file = "x" }`: "address: must be a URL|key_file: this provider has no such key",
		`keyring "alicloudkms" {}`:             "no such provider here: use one of aead, awskms, azurekeyvault, gcpckms, transit",
		`keyring "aead" {}
keyring "awskms" {
  region = "r"
  kms_key_id = "k"
}`: "one block must have active = true",
	} {
		a, err := Parse([]byte(block), "x.hcl")
		require.NoError(t, err, block)
		p := &problems{}
		a.keyringProblems(p)
		var said []string
		for _, err := range p.errs {
			said = append(said, err.Error())
		}
		if want == "" {
			require.Empty(t, said, block)
			continue
		}
		for part := range strings.SplitSeq(want, "|") {
			require.Contains(t, strings.Join(said, "\n"), part, block)
		}
	}
}
