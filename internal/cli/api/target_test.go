package api

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"NOMAD_ADDR": "http://n:1", "DROVER_TOKEN": "d", "NOMAD_TOKEN": "n", "NOMAD_NAMESPACE": "ns",
		"NOMAD_SKIP_VERIFY": "1",
	}
	got := Target{Namespace: "flag"}.Resolved(func(k string) string { return env[k] })
	require.Equal(t, "http://n:1", got.Address)
	require.Equal(t, "d", got.Token, "Drover's own comes first")
	require.Equal(t, "flag", got.Namespace, "a flag comes before all")
	require.True(t, got.SkipVerify)
	require.Equal(t, Target{Address: DefaultAddress}, Target{}.Resolved(func(string) string { return "" }))
	_, err := New(Target{CACert: "/no/such"})
	require.ErrorContains(t, err, "-ca-cert")
	_, err = NewNative(Target{CAPath: "/no/such"})
	require.ErrorContains(t, err, "-ca-path")
	_, err = New(Target{ClientKey: "/no/such"})
	require.ErrorContains(t, err, "-client-cert and -client-key")
}
