package keys

import (
	"net/http"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
)

// cached is for how long others may use what they read of keys without asking again. One that meets a token of a key that it does not know
// asks at once, as a new key signs from its first moment.
const cached = "public, max-age=300"

// discovery answers GET /.well-known/openid-configuration: with it AWS, GCP, Vault and others take identities of tasks. Errors: NotFound
// without an issuer.
func (f *face) discovery(w http.ResponseWriter, r *http.Request) error {
	if f.Issuer == "" {
		return drover.Errorf(drover.NotFound, "OIDC discovery is off: set server.oidc_issuer to the URL at which others reach this cluster")
	}
	w.Header().Set("Cache-Control", cached)
	return httpapi.WriteJSON(w, r, http.StatusOK, struct {
		Issuer        string   `json:"issuer"`
		JWKS          string   `json:"jwks_uri"`
		ResponseTypes []string `json:"response_types_supported"`
		SubjectTypes  []string `json:"subject_types_supported"`
		Algorithms    []string `json:"id_token_signing_alg_values_supported"`
		Claims        []string `json:"claims_supported"`
	}{
		f.Issuer, strings.TrimSuffix(f.Issuer, "/") + "/.well-known/jwks.json",
		[]string{"code"},
		[]string{"public"},
		[]string{"RS256"},
		[]string{"iss", "sub", "aud", "exp", "nbf", "iat", "jti", "nomad_namespace", "nomad_job_id", "nomad_allocation_id", "nomad_task"},
	})
}
