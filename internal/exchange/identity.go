package exchange

import (
	"context"
	"time"
)

// Identities is control as it makes the tokens of what runs on a node.
type Identities interface {
	// SignIdentities makes the tokens that are asked for, in their order. What is refused has its reason; the others have their tokens.
	// Errors: as Controller's; Invalid for more than MaxIdentities.
	SignIdentities(ctx context.Context, nodeID string, wanted []IdentityRequest) ([]SignedIdentity, error)
}

// MaxIdentities is how many tokens can be asked for at once.
const MaxIdentities = 256

// Tokens are what a node shows to join. One that is good is enough.
type Tokens struct {
	Join         string // the servers', or the machine's
	Introduction string // signed by the cluster: its own identity from before, or an introduction
}

// NodeIdentity is a node as it is asked about its own identity, a token that servers signed.
type NodeIdentity interface {
	// IdentityClaims returns what the node's token says, as JSON. Errors: Unavailable while it has none.
	IdentityClaims(ctx context.Context) ([]byte, error)
	// RenewIdentity has the node get another token right away.
	RenewIdentity(ctx context.Context) error
}

// IdentityRequest names an identity of an allocation's task; the zero value is that of the node itself.
type IdentityRequest struct {
	AllocID string
	Task    string
	Name    string // "" = the default one
}

// SignedIdentity is a token, or why there is none.
type SignedIdentity struct {
	Token   string
	Made    time.Time
	Expires time.Time // zero: it has no end
	Refused string    // "" = it was made
}
