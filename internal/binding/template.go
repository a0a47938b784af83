package binding

import (
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
)

// Expand puts variables in the place of "${NAME}" in a template; "$${" is "${". Errors: Invalid for what cannot be read, NotFound for a
// variable that there is not.
func Expand(template string, variable func(name string) (string, bool)) (string, error) {
	var out strings.Builder
	for rest := template; ; {
		before, after, found := strings.Cut(rest, "${")
		if !found {
			out.WriteString(before)
			return out.String(), nil
		}
		if escaped, ok := strings.CutSuffix(before, "$"); ok {
			out.WriteString(escaped + "${")
			rest = after
			continue
		}
		out.WriteString(before)
		name, next, closed := strings.Cut(after, "}")
		if !closed {
			return "", drover.Errorf(drover.Invalid, "%q lacks a } after ${", template)
		}
		value, ok := variable(strings.TrimSpace(name))
		if !ok {
			return "", drover.Errorf(drover.NotFound, "%q names %q, which there is not", template, strings.TrimSpace(name))
		}
		out.WriteString(value)
		rest = next
	}
}

// The variables of a method in templates.
const (
	methodName = "auth_method_name"
	methodType = "auth_method_type"
)

// CheckTokenName reports what is wrong with the template of a method's tokens' names. Errors: Invalid.
func CheckTokenName(m *acl.AuthMethod) error {
	return check("TokenNameFormat", m.TokenNameFormat, func(name string) bool {
		return name == methodName || name == methodType || isValue(name)
	}, "${auth_method_name}, ${auth_method_type} and ${value.NAME} of ClaimMappings")
}

// CheckBindName reports what is wrong with the template of what a rule gives. Errors: Invalid.
func CheckBindName(b *acl.BindingRule) error {
	return check("BindName", b.BindName, isValue, "${value.NAME} of ClaimMappings")
}

// isValue reports whether a variable is one of the mapped claims.
func isValue(name string) bool {
	name, ok := strings.CutPrefix(name, "value.")
	return ok && acl.IsVariable(name)
}

func check(field, template string, known func(name string) bool, may string) error {
	_, err := Expand(template, func(name string) (string, bool) { return "x", known(name) })
	if err != nil {
		return drover.Errorf(drover.Invalid, "%s: %s: it may have %s", field, err.Error(), may)
	}
	return nil
}

// TokenName is the name of a token that the method gives. A variable that the claims lack leaves the default.
func TokenName(m *acl.AuthMethod, c Claims) string {
	for _, template := range []string{m.TokenNameFormat, acl.DefaultTokenName} {
		name, err := Expand(template, func(name string) (string, bool) {
			switch name {
			case methodName:
				return m.Name, true
			case methodType:
				return m.Type, true
			}
			return c.value(name)
		})
		if err == nil && name != "" && len(name) <= acl.MaxTokenName {
			return name
		}
	}
	return m.Type + "-" + m.Name
}
