package options

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamesOfCapabilities(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"CAP_NET_ADMIN": "net_admin", "net_admin": "net_admin", "Cap_Kill": "kill", "ALL": "all", "": "",
	} {
		require.Equal(t, want, CapName(name), name)
	}
	list := []string{"CAP_CHOWN", "kill"}
	require.True(t, HasCap(list, "chown"))
	require.True(t, HasCap(list, "CAP_KILL"))
	require.False(t, HasCap(list, "all"), "all is a name as the others")
	require.False(t, HasCap(nil, "kill"))
}
