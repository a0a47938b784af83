package cluster

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// What would restrict a namespace in Nomad is refused, and not forgotten; what Nomad answers of one that restricts
// nothing is taken.
func TestNamespacesThatRestrictAreRefused(t *testing.T) {
	t.Parallel()
	for body, refused := range map[string]string{
		`{"Name": "n", "Meta": {"a": "b"}}`: "",
		`{"Name": "n", "Capabilities": null, "NodePoolConfiguration": {"Default": "default", "Allowed": null, "Denied": []}}`: "",
		`{"Name": "n", "VaultConfiguration": {"Default": "default"}, "ConsulConfiguration": {"Default": "default"}}`:          "",
		`{"Name": "n", "Quota": "q"}`:                                         "",
		`{"Name": "n", "Capabilities": {"EnabledTaskDrivers": ["docker"]}}`:   "",
		`{"Name": "n", "Capabilities": {"DisabledTaskDrivers": ["docker"]}}`:  "",
		`{"Name": "n", "Capabilities": {"EnabledNetworkModes": ["bridge"]}}`:  "",
		`{"Name": "n", "Capabilities": {"DisabledNetworkModes": ["bridge"]}}`: "",
		`{"Name": "n", "NodePoolConfiguration": {"Default": "gpu"}}`:          "",
		`{"Name": "n", "NodePoolConfiguration": {"Denied": ["gpu"]}}`:         "",
		`{"Name": "n", "VaultConfiguration": {"Allowed": ["a"]}}`:             "VaultConfiguration",
		`{"Name": "n", "ConsulConfiguration": {"Denied": ["a"]}}`:             "ConsulConfiguration",
		`{"Name": "n", "RequiredExtraClaims": {"a": "b"}}`:                    "",
		`{"Name": "n", "OptionalExtraClaims": {"a": "b"}}`:                    "",
	} {
		var b namespaceBody
		require.NoError(t, json.Unmarshal([]byte(body), &b))
		err := b.unheeded()
		if refused == "" {
			require.NoError(t, err, body)
			continue
		}
		require.Equal(t, drover.NotImplemented, drover.CodeOf(err), body)
		require.ErrorContains(t, err, `namespace "n": `+refused+" is not supported", body)
	}
}
