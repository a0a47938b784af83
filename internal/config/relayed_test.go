package config

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/config/machines"
)

// A node's callers get no further through it than at the server itself.
func TestRefuseRelayed(t *testing.T) {
	t.Parallel()
	const near, far = "127.0.0.1:1000", "10.0.0.9:1000"
	for name, c := range map[string]struct {
		change    func(a *Agent)
		near, far bool // whether it is refused
	}{
		"an API for its own machine": {func(*Agent) {}, false, true},
		"a token":                    {func(a *Agent) { a.APIToken = "t" }, false, false},
		"access control":             {func(a *Agent) { a.ACL = &ACL{Enabled: new(true)} }, false, false},
		"an API for everybody":       {func(a *Agent) { a.BindAddr, a.Insecure = "0.0.0.0", new(true) }, false, false},
		"certificates, not between agents": {
			func(a *Agent) { a.APIToken, a.TLS = "t", &TLS{HTTP: new(true), VerifyHTTPSClient: new(true)} }, true, true,
		},
		"certificates": {func(a *Agent) { a.TLS = &TLS{HTTP: new(true), RPC: new(true), VerifyHTTPSClient: new(true)} }, false, false},
		"certificates, and machines of another authority": {func(a *Agent) {
			a.TLS = &TLS{HTTP: new(true), RPC: new(true), VerifyHTTPSClient: new(true)}
			a.Fleet = &machines.Fleet{Providers: make([]*machines.Provider, 1)}
		}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := valid()
			c.change(a)
			require.Equal(t, c.near, a.RefuseRelayed(near) != nil, "%v", a.RefuseRelayed(near))
			require.Equal(t, c.far, a.RefuseRelayed(far) != nil, "%v", a.RefuseRelayed(far))
			require.Equal(t, c.far, a.RefuseRelayed("nonsense") != nil)
		})
	}
}
