package native

import (
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/policy"
)

// receiptOperations are those on signed receipts.
func (f *Face) receiptOperations() []operation {
	return []operation{{
		Route:   httpapi.Route{Pattern: "GET /v1/execution/{execution}/receipt", Where: ofExecution, Need: follows, Handle: f.signedReceipt},
		summary: "The receipt of an execution that ended, signed with a key of /.well-known/jwks.json (409 while it runs)",
		out:     execution.SignedReceipt{},
	}}
}

// signedReceipt answers GET /v1/execution/ID/receipt. It is signed when it is asked for, so that no execution's end waits for that.
func (f *Face) signedReceipt(w http.ResponseWriter, r *http.Request) error {
	if err := f.allowed(r, policy.ReadRunner); err != nil {
		return err
	}
	if f.Receipts == nil {
		return drover.Errorf(drover.NotImplemented, "this server signs no receipts")
	}
	st, err := f.Executions.Statement(r.Context(), r.PathValue("execution"))
	if err != nil {
		return err
	}
	signed, err := f.Receipts.SignReceipt(r.Context(), st)
	return answer(w, r, http.StatusOK, signed, err)
}
