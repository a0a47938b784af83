package executor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/claims"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/exec/runner"
)

// Identities signs tokens of executions. Errors: Unavailable while that cannot be done.
type Identities interface {
	SignExecution(ctx context.Context, of claims.ExecutionIdentity) (token string, err error)
}

// identityLeeway is how long a token is good after its execution ends at the latest: what it began elsewhere may have to be ended.
const identityLeeway = time.Minute

// identify has the tokens signed that the command is to have of its own, which are always masked. Errors: Forbidden for those that the
// environment does not allow; NotImplemented, Unavailable.
func (s *Executor) identify(ctx context.Context, use *runner.Use, spec *execution.Spec) error {
	if !slices.ContainsFunc(spec.Secrets, func(x execution.Secret) bool { return x.Identity != "" }) {
		return nil
	}
	if s.deps.Identities == nil {
		return drover.Errorf(drover.NotImplemented, "secrets: this server signs no identities of executions")
	}
	r, grant := use.Runner(), use.Identity()
	spec.Secrets, spec.Values = slices.Clone(spec.Secrets), slices.Clone(spec.Values) // others have them, too
	for i := range spec.Secrets {
		x := &spec.Secrets[i]
		if x.Identity == "" {
			continue
		}
		switch {
		case grant == nil:
			return drover.Errorf(drover.Forbidden, "secrets[%d].identity: environment %q does not let its executions have identities: "+
				"its identity.audience can", i, r.Environment)
		case !slices.Contains(grant.Audience, x.Identity):
			return drover.Errorf(drover.Forbidden, "secrets[%d].identity: environment %q lets its executions have identities for %s, not for %q",
				i, r.Environment, strings.Join(grant.Audience, ", "), x.Identity)
		}
		of := claims.ExecutionIdentity{
			Namespace: execution.NamespaceOf(r.ID), Environment: r.Environment, Runner: r.ID, Execution: spec.ID, Audience: x.Identity,
			TTL: cmp.Or(grant.TTL, environment.DefaultIdentityTTL),
		}
		if wall := spec.Limits.Wall; wall > 0 {
			of.TTL = min(of.TTL, wall+identityLeeway)
		}
		token, err := s.deps.Identities.SignExecution(ctx, of)
		if err != nil {
			return fmt.Errorf("secrets[%d].identity: %w", i, err)
		}
		spec.Values[i], x.Mask = token, true
	}
	return nil
}
