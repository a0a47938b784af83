package identity

import (
	"context"

	"github.com/drover-project/drover/internal/claims"
)

// SignExecution makes the token of an execution. Errors: Unavailable while no key can be used.
func (i *Issuer) SignExecution(ctx context.Context, of claims.ExecutionIdentity) (string, error) {
	token, _, err := i.deps.Signer.Sign(ctx, claims.Execution(i.stamp(), of))
	return token, err
}
