package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/rights"
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

// OneToken resolves exactly the given token, whose holder may do everything, compared in constant time. For "" it is nil: everybody may do
// everything.
func OneToken(want string) Resolver {
	if want == "" {
		return nil
	}
	return &oneToken{sha256.Sum256([]byte(want)), &rights.Caller{Rights: rights.Management(), Token: &acl.Token{
		AccessorID: "api_token", Name: "api_token of the configuration", Type: acl.ManagementToken,
	}}}
}

// oneToken knows the digest of a token, and its holder.
type oneToken struct {
	digest [sha256.Size]byte
	holder *rights.Caller
}

// Resolve implements Resolver.
func (o *oneToken) Resolve(secret acl.Secret) (*rights.Caller, error) {
	if err := o.Refuses(secret); err != nil {
		return nil, err
	}
	return o.holder, nil
}

// Refuses says why the token is refused, whatever other agents know; nil if it is not.
func (o *oneToken) Refuses(secret acl.Secret) error {
	got := sha256.Sum256([]byte(secret))
	if subtle.ConstantTimeCompare(o.digest[:], got[:]) == 1 {
		return nil
	}
	if secret == "" {
		return errNoToken
	}
	return errWrongToken
}

// The refusals of who does not have the one token.
var (
	errNoToken    = drover.Errorf(drover.Unauthorized, "a token is needed: the agent's api_token, as -token, DROVER_TOKEN or NOMAD_TOKEN")
	errWrongToken = drover.Errorf(drover.Forbidden,
		"Permission denied: the token is not the agent's api_token (-token, DROVER_TOKEN, NOMAD_TOKEN)")
)
