package gitfetch

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAddressesOfSubmodules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ parent, address, want string }{
		{"https://h/a/b.git", "https://other/x", "https://other/x"},
		{"https://h/a/b.git", "../c.git", "https://h/a/c.git"},
		{"https://h/a/b.git/", "../c.git/", "https://h/a/c.git"},
		{"https://h/a/b.git", "./c.git", "https://h/a/b.git/c.git"},
		{"https://u:token@h:8443/a/b.git", "../../x/y.git", "https://u:token@h:8443/x/y.git"},
		{"https://u:token@h:8443/a/b.git", "../../../x", ""},
		{"https://h/a", "../../x", ""},
		{"ssh://git@h/a/b.git", "../c.git", "ssh://git@h/a/c.git"},
		{"git@h:a/b.git", "../c.git", "git@h:a/c.git"},
		{"git@h:b.git", "../c.git", "git@h:c.git"},
		{"git@h:b.git", "../../c.git", ""},
	} {
		got, err := relative(c.parent, c.address)
		if c.want == "" {
			require.ErrorContains(t, err, "leads above the server", "%+v", c)
			require.NotContains(t, err.Error(), "token", "%+v", c)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%+v", c)
	}
}
