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

// IdentityRequest names an identity of an allocation's task.
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
