package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/drover-project/drover"
)

// Token returns the request's token: X-Drover-Token, X-Nomad-Token or "Authorization: Bearer"; "" if there is none.
func Token(r *http.Request) string {
	for _, name := range []string{"X-Drover-Token", "X-Nomad-Token"} {
		if t := strings.TrimSpace(r.Header.Get(name)); t != "" {
			return t
		}
	}
	scheme, t, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(t)
	}
	return ""
}

// OneToken makes an Authorize func that accepts exactly the given token, compared in constant time. For "" it
// returns nil: everyone is let in.
func OneToken(want string) func(string) error {
	if want == "" {
		return nil
	}
	sum := sha256.Sum256([]byte(want))
	return func(got string) error {
		g := sha256.Sum256([]byte(got))
		if subtle.ConstantTimeCompare(sum[:], g[:]) == 1 {
			return nil
		}
		if got == "" {
			return drover.Errorf(drover.Unauthorized, "a token is needed: the agent's api_token, as -token, DROVER_TOKEN or NOMAD_TOKEN")
		}
		return drover.Errorf(drover.Forbidden, "Permission denied: the token is not the agent's api_token (-token, DROVER_TOKEN, NOMAD_TOKEN)")
	}
}
