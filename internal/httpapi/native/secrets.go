package native

import (
	"context"
	"fmt"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/secrets"
)

// Variables reads variables with a caller's rights; control/variables has it. Errors: Forbidden, NotFound.
type Variables interface {
	Get(ctx context.Context, who *rights.Caller, namespace, path string) (*secrets.Variable, error)
}

// maxSecretBytes bounds the values of one execution together.
const maxSecretBytes = 1 << 20

// reveal reads the secrets that a request names, each with the rights of its caller. One without a namespace is in that of the runner.
// Errors: Forbidden; Invalid, naming the secret.
func (f *Face) reveal(ctx context.Context, namespace string, spec *execution.Spec) error {
	spec.Values = nil
	if len(spec.Secrets) == 0 {
		return nil
	}
	size, values := 0, make([]string, len(spec.Secrets))
	for i := range spec.Secrets {
		s := &spec.Secrets[i]
		if s.Identity != "" { // which is made when the execution starts
			continue
		}
		if f.Variables == nil {
			return drover.Errorf(drover.NotImplemented, "secrets: this server reads no variables for executions")
		}
		if s.Namespace == "" {
			s.Namespace = namespace
		}
		v, err := f.Variables.Get(ctx, httpapi.CallerOf(ctx), s.Namespace, s.Path)
		switch {
		case drover.CodeOf(err) == drover.NotFound:
			return drover.Errorf(drover.Invalid, "secrets[%d].path: namespace %q has no variable %q", i, s.Namespace, s.Path)
		case err != nil:
			return fmt.Errorf("secrets[%d].path: variable %q: %w", i, s.Path, err)
		}
		value, has := v.Items[s.Key]
		if !has {
			return drover.Errorf(drover.Invalid, "secrets[%d].key: the variable %q has no item %q", i, s.Path, s.Key)
		}
		if size += len(value); size > maxSecretBytes {
			return drover.Errorf(drover.TooLarge, "secrets: their values have more than %d bytes together", maxSecretBytes)
		}
		values[i] = value
	}
	spec.Values = values
	return nil
}
