package claims

import (
	"strings"
	"time"
)

// ExecutionIdentity is what a token of an execution says.
type ExecutionIdentity struct {
	Namespace, Environment, Runner, Execution string
	Audience                                  string
	TTL                                       time.Duration
}

// Execution are the claims of an execution's identity. The subject is that of its environment, so that others can name it beforehand.
func Execution(s Stamp, of ExecutionIdentity) *Claims {
	subject := strings.Join([]string{"environment", s.Region, of.Namespace, of.Environment}, ":")
	return &Claims{
		Claims: s.standard(subject, []string{of.Audience}, of.TTL),
		Tenant: of.Namespace, Environment: of.Environment, Runner: of.Runner, Execution: of.Execution,
	}
}
