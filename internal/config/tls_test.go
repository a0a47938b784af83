package config

import (
	"crypto/tls"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

func TestRestrict(t *testing.T) {
	t.Parallel()
	var c tls.Config
	require.NoError(t, (&TLS{}).Restrict(&c))
	require.Equal(t, tls.Config{MinVersion: tls.VersionTLS12}.MinVersion, c.MinVersion)
	require.Nil(t, c.CipherSuites)
	require.NoError(t, (&TLS{
		MinVersion: "tls13", CipherSuites: "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
	}).Restrict(&c))
	require.Equal(t, uint16(tls.VersionTLS13), c.MinVersion)
	require.Equal(t, []uint16{tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}, c.CipherSuites)
	for key, cfg := range map[string]*TLS{
		"tls.tls_min_version":   {MinVersion: "tls10"},
		"tls.tls_cipher_suites": {CipherSuites: "TLS_RSA_WITH_RC4_128_SHA"}, // known, and insecure
	} {
		err := cfg.Restrict(&tls.Config{})
		require.ErrorContains(t, err, key)
		require.Equal(t, drover.Invalid, drover.CodeOf(err))
		require.ErrorContains(t, Merge(Default(), &Agent{TLS: cfg}).Validate(), key)
	}
}

// Who restricts something is told that it would not be.
func TestKeysThatRestrictAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plugin \"raw_exec\" {\nconfig {\ndenied_host_uids = \"0-99\"\n}\n}":              "plugin.config.denied_host_uids",
		"plugin \"raw_exec\" {\nconfig {\ndenied_envvars = [\"AWS_*\"]\n}\n}":             "tasks get no variables of the agent's",
		"plugin \"raw_exec\" {\nconfig {\ndenied_host_gids = \"0\"\nenabled = true\n}\n}": "plugin.config.denied_host_gids",
	} {
		_, err := Parse([]byte(text), "x.hcl")
		require.ErrorContains(t, err, want, text)
	}
}
