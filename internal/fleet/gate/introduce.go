package gate

import (
	"github.com/drover-project/drover"
)

// introduced decides about a node that shows an identity of this cluster: its own, or an introduction. The identity says which pool the
// node is in; the default one is what a node names that was not told of any. A node that was removed needs another introduction.
// Errors: Unauthorized.
func (g *Gate) introduced(token string, node *drover.Node, s State) error {
	c, err := g.deps.Verify(token)
	if err != nil {
		return drover.Errorf(drover.Unauthorized, "%s: %s", err.Error(), giveIntroduction)
	}
	switch {
	case c.IsNode() && (c.NodeID != node.ID || s.Node(node.ID) == nil):
		return drover.Errorf(drover.Unauthorized, "the identity is of another node, or of one that was removed: %s", giveIntroduction)
	case !c.IsNode() && !c.IsIntroduction():
		return drover.Errorf(drover.Unauthorized, "the token is of no node and introduces none: %s", giveIntroduction)
	case node.NodePool != "" && node.NodePool != drover.DefaultNodePool && node.NodePool != c.NodePool:
		return drover.Errorf(drover.Unauthorized, "client.node_pool is %q, and the token is for pool %q: %s", node.NodePool, c.NodePool,
			giveIntroduction)
	case c.NodeName != "" && node.Name != "" && node.Name != c.NodeName:
		return drover.Errorf(drover.Unauthorized, "the node's name is %q, and the token is for %q: %s", node.Name, c.NodeName, giveIntroduction)
	}
	node.NodePool = c.NodePool
	if c.NodeName != "" {
		node.Name = c.NodeName
	}
	return nil
}

// giveIntroduction is what a person does about a node whose identity is refused.
const giveIntroduction = `make a token for it with "drover node intro create", and give it as client.intro_token, -client-intro-token or ` +
	"NOMAD_CLIENT_INTRO_TOKEN, or in the file client/intro_token.jwt of its data_dir"
