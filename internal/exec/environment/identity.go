package environment

import (
	"fmt"
	"strings"
	"time"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/claims"
)

// Bounds of the identities that executions may have.
const (
	DefaultIdentityTTL = time.Hour
	minIdentityTTL     = time.Minute
	maxIdentityTTL     = 24 * time.Hour
	maxAudiences       = 16
	maxAudience        = 256
)

// validateIdentity checks what an environment allows; nil is nothing.
func validateIdentity(g *execution.IdentityGrant) (faults []error) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if g == nil {
		return nil
	}
	if len(g.Audience) == 0 || len(g.Audience) > maxAudiences {
		fault("identity.audience: %d, want 1 to %d whom tokens may be for", len(g.Audience), maxAudiences)
	}
	for i, a := range g.Audience {
		switch {
		case a == "" || len(a) > maxAudience || strings.ContainsFunc(a, func(r rune) bool { return r <= ' ' || r == 0x7f }):
			fault("identity.audience[%d] %q: want 1 to %d characters without blanks", i, a, maxAudience)
		case a == claims.Audience:
			fault("identity.audience[%d]: %q is this cluster itself, which takes no identities of executions", i, a)
		}
	}
	if g.TTL != 0 && (g.TTL < minIdentityTTL || g.TTL > maxIdentityTTL) {
		fault("identity.ttl %d: want %d to %d ns, or 0 for %d", g.TTL, minIdentityTTL, maxIdentityTTL, DefaultIdentityTTL)
	}
	return faults
}
