package gate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/claims"
	"github.com/drover-project/drover/internal/exchange"
)

// Who was introduced comes in as what the token says, and comes again with its own identity. Nobody else's token is of use.
func TestIntroductions(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.nodes["n1"] = &drover.Node{ID: "n1", NodePool: "gpu"}
	removed, other := &drover.Node{ID: "n9", NodePool: "gpu"}, &drover.Node{ID: "n2", NodePool: "gpu"}
	s := claims.Stamp{Region: "global"}
	tokens := map[string]*claims.Claims{
		"ey.intro.x": claims.Introduction(s, "worker", "gpu", 0), "ey.any.x": claims.Introduction(s, "", "gpu", 0),
		"ey.node.x": claims.Node(s, w.nodes["n1"], 0), "ey.removed.x": claims.Node(s, removed, 0),
		"ey.task.x": {AllocationID: "a", Task: "t"},
	}
	deps := w.deps()
	deps.Verify = func(token string) (*claims.Claims, error) {
		if c := tokens[token]; c != nil {
			return c, nil
		}
		return nil, claims.ErrExpired
	}
	open, strict := New(Config{JoinToken: "secret"}, deps), New(Config{JoinToken: "secret", Strict: true}, deps)
	for _, c := range []struct {
		token   string
		node    drover.Node
		refused string
	}{
		{"ey.intro.x", drover.Node{ID: "n2", Name: "worker", NodePool: "gpu"}, ""},
		{"ey.intro.x", drover.Node{ID: "n2"}, ""}, // a tunnel, before it registers
		{"ey.intro.x", drover.Node{ID: "n2", Name: "worker"}, ""},
		{"ey.intro.x", drover.Node{ID: "n2", Name: "another", NodePool: "gpu"}, `the node's name is "another"`},
		{"ey.intro.x", drover.Node{ID: "n2", Name: "worker", NodePool: "vault"}, `client.node_pool is "vault"`},
		{"ey.intro.x", drover.Node{ID: "n2", Name: "worker", NodePool: "default"}, ""},
		{"ey.any.x", drover.Node{ID: "n2", Name: "another", NodePool: "gpu"}, ""},
		{"ey.node.x", drover.Node{ID: "n1", Name: "x", NodePool: "gpu"}, ""},
		{"ey.node.x", drover.Node{ID: "n1", NodePool: "vault"}, `client.node_pool is "vault"`},
		{"ey.node.x", drover.Node{ID: other.ID, NodePool: "gpu"}, "of another node"},
		{"ey.removed.x", *removed, "one that was removed"},
		{"ey.task.x", drover.Node{ID: "n1", NodePool: "gpu"}, "the token is of no node"},
		{"ey.old.x", drover.Node{ID: "n1", NodePool: "gpu"}, "has expired"},
	} {
		for _, g := range []*Gate{open, strict} {
			n := c.node
			err := g.Admit(exchange.Tokens{Introduction: c.token}, &n)
			if c.refused == "" {
				require.NoError(t, err, "%s %+v", c.token, c.node)
				require.Equal(t, "gpu", n.NodePool)
				continue
			}
			unauthorized(t, err, c.refused)
			require.ErrorContains(t, err, "drover node intro create", "it says what to do")
		}
	}
	shows := func(g *Gate, join, intro, node string) error {
		return g.Admit(exchange.Tokens{Join: join, Introduction: intro}, &drover.Node{ID: node, Name: "late", NodePool: "gpu"})
	}
	require.NoError(t, shows(open, "secret", "", "n3"))
	require.NoError(t, shows(open, "secret", "ey.removed.x", "n9"), "a node that was removed registers again")
	unauthorized(t, shows(open, "wrong", "ey.removed.x", "n9"), "wrong join token")
	unauthorized(t, shows(strict, "secret", "ey.removed.x", "n9"), "one that was removed")
	unauthorized(t, shows(strict, "secret", "", "n3"), "enforcement is strict")
	unauthorized(t, shows(New(Config{Certified: true, Strict: true}, deps), "", "", "n3"), "enforcement is strict")
	require.NoError(t, shows(strict, w.token("i1"), "", "n4"), "a machine of the fleet was introduced by the fleet")
	require.NoError(t, shows(New(Config{JoinToken: "secret", Warn: true}, deps), "secret", "", "n5"))
	require.Contains(t, w.logs.String(), "a node comes without an introduction")
}
