package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What listens beyond loopback needs a token and TLS, or somebody who says that it does not.
func TestExposedListeners(t *testing.T) {
	t.Parallel()
	const server = "server { enabled = true }\n"
	const secure = "tls {\n  http = true\n  rpc = true\n  cert_file = \"c\"\n  key_file = \"k\"\n  ca_file = \"a\"\n}\n"
	const here = "bind_addr = \"10.0.0.1\"\n"
	checked := strings.Replace(secure, "}", "verify_https_client = true\n}", 1)
	for text, wants := range map[string][]string{
		server:                                                          nil,
		server + `bind_addr = "127.0.0.7"`:                              nil,
		server + `bind_addr = "::1"`:                                    nil,
		server + `addresses { http = "localhost" }`:                     nil,
		server + `bind_addr = "0.0.0.0"`:                                {"bind_addr: the API on 0.0.0.0 lacks api_token: ", "insecure = true"},
		server + "bind_addr = \"::\"\napi_token = \"t\"":                nil, // it makes its certificates
		server + "bind_addr = \"::\"\napi_token = \"t\"\ntls {\n}":      {"the API on :: lacks tls { http = true }:", "the port of the nodes"},
		server + secure + here:                                          {"the API on 10.0.0.1 lacks api_token:"},
		server + secure + here + "api_token = \"t\"":                    nil,
		server + secure + here + "acl {\n enabled = true\n}":            nil,
		server + checked + here:                                         nil,
		server + `addresses { http = "drover.example" }`:                {"addresses.http: the API on drover.example lacks api_token:"},
		server + `addresses { rpc = "0.0.0.0" }`:                        nil,
		server + "addresses {\n rpc = \"0.0.0.0\"\n}\ntls {\n}":         {"addresses.rpc: the port of the nodes"},
		server + "bind_addr = \"0.0.0.0\"\ninsecure = true":             nil,
		"client {\n  enabled = true\n  servers = [\"x:1\"]\n}\n" + here: {"the API on 10.0.0.1"},
	} {
		over, err := Parse([]byte("data_dir = \"/x\"\n"+text), "a.hcl")
		require.NoError(t, err, text)
		err = Merge(Default(), over).Validate()
		if wants == nil {
			require.NoError(t, err, text)
			continue
		}
		for _, want := range wants {
			require.ErrorContains(t, err, want, text)
		}
	}
	dev := Merge(Merge(Default(), DevMode()), &Agent{BindAddr: "0.0.0.0"})
	require.Len(t, dev.Exposed(), 1, "no node dials it")
}
