package answer

import (
	"net/http"

	"github.com/drover-project/drover/internal/httpapi"
)

// CheckAndSet reads ?cas=INDEX of a request that changes something only if nobody changed it since that index, which it stores in
// modified. cas is false if the request does not have it. Errors: Invalid.
func CheckAndSet(r *http.Request, modified *uint64) (cas bool, err error) {
	index, err := httpapi.UintParam(r, "cas", 0)
	if err != nil || !r.URL.Query().Has("cas") {
		return false, err
	}
	*modified = index
	return true, nil
}
