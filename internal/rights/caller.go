package rights

import (
	"context"

	"github.com/drover-project/drover/acl"
)

// Caller is who asks, and what they may do. It is never changed.
type Caller struct {
	Token *acl.Token // what a caller without one has stands for everybody; never nil
	*Rights
}

// Is reports whether the caller is the holder of the token with the accessor.
func (c *Caller) Is(accessor string) bool {
	return c != nil && accessor != "" && c.Token.AccessorID == accessor
}

// String names the caller for logs.
func (c *Caller) String() string {
	if c == nil {
		return "nobody"
	}
	return c.Token.String()
}

// RequestKey is the key of a request's context under which is a value that says its Caller, as it is known by then.
type RequestKey struct{}

// CallerOf returns who sent the request whose context it is; nil where nobody did, or where that is not known.
func CallerOf(ctx context.Context) *Caller {
	if r, ok := ctx.Value(RequestKey{}).(interface{ Caller() *Caller }); ok {
		return r.Caller()
	}
	return nil
}
