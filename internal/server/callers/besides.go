package callers

import (
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/claims"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/rights"
)

// Besides resolves the one token, and identities of tasks as well.
type Besides struct{ One, Tasks httpapi.Resolver }

// Resolve implements httpapi.Resolver.
func (b Besides) Resolve(secret acl.Secret) (*rights.Caller, error) {
	if claims.Looks(string(secret)) {
		return b.Tasks.Resolve(secret)
	}
	return b.One.Resolve(secret)
}
