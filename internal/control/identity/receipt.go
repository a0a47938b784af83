package identity

import (
	"context"
	"encoding/json"

	"github.com/go-jose/go-jose/v4"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/claims"
)

// SignReceipt signs what is known of an execution's end. Errors: Unavailable while no key can be used.
func (i *Issuer) SignReceipt(ctx context.Context, st execution.Statement) (out execution.SignedReceipt, err error) {
	payload, err := json.Marshal(claims.Receipt(i.stamp(), st))
	if err != nil {
		return out, drover.Errorf(drover.Internal, "encoding a receipt: %w", err)
	}
	out.Token, out.KeyID, err = i.deps.Signer.SignBytes(ctx, jose.EdDSA, claims.ReceiptType, payload)
	return out, err
}
