package acl

import (
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/validation"
)

// The bounds of names and texts, in bytes.
const (
	MaxName        = 128 // of policies, roles and auth methods
	MaxDescription = 256
	MaxTokenName   = 256
	MaxRules       = 256 << 10 // of one policy
	MaxLinks       = 512       // policies and roles of one token, policies of one role
)

// name checks what Nomad takes as the name of a policy, role or auth method: letters, digits and '-'.
func name(v *validation.Report, path, s string) {
	other := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-'
	}
	ok := s != "" && len(s) <= MaxName && strings.IndexFunc(s, other) < 0
	v.Check(ok, path, "invalid name %q: give 1 to %d letters, digits or '-'", s, MaxName)
}

// text checks the length of what people wrote.
func text(v *validation.Report, path, s string, most int) {
	v.Check(len(s) <= most, path, "is longer than %d bytes: make it shorter", most)
}

// invalid is the report as one error of the noun; nil if nothing was found.
func invalid(noun string, v *validation.Report) error {
	if err := v.Err(); err != nil {
		return drover.Errorf(drover.Invalid, "invalid ACL %s: %w", noun, err)
	}
	return nil
}
