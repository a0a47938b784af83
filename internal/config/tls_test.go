package config

import (
	"crypto/tls"
	"strings"
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

// A server makes its certificates itself where it would be refused without; nothing else changes.
func TestWhoMakesCertificates(t *testing.T) {
	t.Parallel()
	const server, token, here = "server {\n enabled = true\n}\n", "api_token = \"t\"\n", "bind_addr = \"10.0.0.1\"\n"
	const client = "client {\n enabled = true\n servers = [\"x:1\"]\n}\n"
	const auto = "tls {\n auto = true\n}\n"
	const files = "tls {\n http = true\n rpc = true\n ca_file = \"a\"\n cert_file = \"c\"\n key_file = \"k\"\n}\n"
	load := func(text string) *Agent {
		over, err := Parse([]byte("data_dir = \"/x\"\n"+text), "a.hcl")
		require.NoError(t, err, text)
		return Merge(Default(), over)
	}
	for text, want := range map[string]bool{
		server: false, server + auto: true, server + here + token: true, server + here + token + "insecure = true": false,
		server + here + token + files: false, server + token + "addresses {\n rpc = \"10.0.0.1\"\n}\n": true,
		server + token + "addresses {\n http = \"10.0.0.1\"\n}\n": true, client: false,
		server + here + token + "tls {\n auto = true\n tls_min_version = \"tls13\"\n}\n": true,
		// Gossip alone is safe by its key, as before.
		"server {\n enabled = true\n encrypt = \"MDEyMzQ1Njc4OWFiY2RlZg==\"\n}\naddresses {\n serf = \"10.0.0.1\"\n}\n": false,
		"server {\n enabled = true\n encrypt = \"MDEyMzQ1Njc4OWFiY2RlZg==\"\n bootstrap_expect = 3\n}\n" + here + token: true,
	} {
		a := load(text)
		require.NoError(t, a.Validate(), text)
		require.Equal(t, want, a.AutoTLS(), text)
	}
	for text, want := range map[string]string{
		client + auto: "tls.auto: is for servers: remove it",
		server + strings.Replace(files, "http", "auto = true\n http", 1): "tls.auto: does not go with ca_file, cert_file and key_file",
		server + "tls {\n auto = true\n rpc = false\n}\n":                "tls.rpc: must not be false with tls.auto",
		server + "tls {\n rpc = true\n}\n":                               "tls: needs cert_file and key_file, or auto = true at a server",
		server + here + token + "ports {\n serf = 4648\n}\n":             "server.encrypt: must be set where several servers",
		server + here: "bind_addr: the API on 10.0.0.1 lacks api_token: ",
		server + here + token + "tls {\n auto = true\n http = false\n}\n": "the API on 10.0.0.1 lacks tls { http = true }: ",
	} {
		err := load(text).Validate()
		require.Equal(t, drover.Invalid, drover.CodeOf(err), text)
		require.ErrorContains(t, err, want, text)
	}
	dev := Merge(Merge(Default(), DevMode()), &Agent{TLS: &TLS{Auto: new(true)}})
	require.False(t, dev.AutoTLS())
	require.ErrorContains(t, dev.Validate(), "tls.auto: does not go with -dev")

	block := load(server + here + token).OwnTLS()
	require.Equal(t, &TLS{Auto: new(true), HTTP: new(true), RPC: new(true)}, block)
	block = load(server + auto).OwnTLS()
	require.Equal(t, &TLS{Auto: new(true), HTTP: new(false), RPC: new(true)}, block, "the API stays as it was on loopback")
}
