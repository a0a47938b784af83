package binding

import (
	"errors"
	"strings"

	"github.com/hashicorp/go-bexpr"
	"github.com/hashicorp/go-bexpr/grammar"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/validation"
)

// maxExpressions bounds what go-bexpr tries while it parses.
const maxExpressions = 20_000

// Check reports what is wrong with the rule's selector and template. Errors: Invalid.
func Check(b *acl.BindingRule) error {
	if b.Selector != "" {
		if _, err := compile(b.Selector); err != nil {
			return err
		}
	}
	return CheckBindName(b)
}

// compile reads a selector. Errors: Invalid.
func compile(selector string) (*bexpr.Evaluator, error) {
	bad := func(err error) error { return drover.Errorf(drover.Invalid, "Selector: %w", err) }
	parsed, err := grammar.Parse("", []byte(selector), grammar.MaxExpressions(maxExpressions))
	if err != nil {
		return nil, bad(err)
	}
	if err := checkExpression(parsed); err != nil {
		return nil, bad(err)
	}
	e, err := bexpr.CreateEvaluator(selector, bexpr.WithMaxExpressions(maxExpressions))
	if err != nil {
		return nil, bad(err)
	}
	return e, nil
}

// checkExpression refuses selectors of what claims have not, which would hold for nobody, and patterns that grow beyond bounds.
func checkExpression(e any) error {
	switch e := e.(type) {
	case *grammar.BinaryExpression:
		return errors.Join(checkExpression(e.Left), checkExpression(e.Right))
	case *grammar.UnaryExpression:
		return checkExpression(e.Operand)
	case *grammar.CollectionExpression:
		return errors.Join(checkPath(e.Selector), patterns(e.Inner))
	case *grammar.MatchExpression:
		return errors.Join(checkPath(e.Selector), patterns(e))
	}
	return nil
}

// checkPath refuses a path that begins otherwise than a claim's.
func checkPath(s grammar.Selector) error {
	if len(s.Path) < 2 || s.Path[0] != "value" && s.Path[0] != "list" {
		return drover.Errorf(drover.Invalid, "%q is neither value.NAME of ClaimMappings nor list.NAME of ListClaimMappings",
			strings.Join(s.Path, "."))
	}
	return nil
}

// patterns refuses regular expressions that would grow beyond bounds: go-bexpr compiles each as it stands.
func patterns(e any) error {
	switch e := e.(type) {
	case *grammar.BinaryExpression:
		return errors.Join(patterns(e.Left), patterns(e.Right))
	case *grammar.UnaryExpression:
		return patterns(e.Operand)
	case *grammar.CollectionExpression:
		return patterns(e.Inner)
	case *grammar.MatchExpression:
		if e.Value != nil && (e.Operator == grammar.MatchMatches || e.Operator == grammar.MatchNotMatches) {
			if _, err := validation.CompilePattern(e.Value.Raw); err != nil {
				return drover.Errorf(drover.Invalid, "%w", err)
			}
		}
	}
	return nil
}

// Holds reports whether the rule is for who has the claims. A claim that they lack equals nothing and has nothing, so that it differs from
// everything. A selector that cannot be read is for nobody.
func Holds(b *acl.BindingRule, c Claims) bool {
	if b.Selector == "" {
		return true
	}
	e, err := compile(b.Selector)
	if err != nil {
		return false
	}
	ok, err := e.Evaluate(c)
	return err == nil && ok
}

// Given is what rules give: everything, or roles and policies by their names.
type Given struct {
	Management bool
	Roles      []string
	Policies   []string
}

// Bind returns what the rules that hold give, each name once, in the order of the rules. A name that needs a claim which is not there is
// left out.
func Bind(rules []*acl.BindingRule, c Claims) (g Given) {
	seen := map[[2]string]bool{}
	for _, b := range rules {
		if !Holds(b, c) {
			continue
		}
		if b.BindType == acl.BindManagement {
			g.Management = true
			continue
		}
		name, err := Expand(b.BindName, c.value)
		if err != nil || name == "" || seen[[2]string{b.BindType, name}] {
			continue
		}
		seen[[2]string{b.BindType, name}] = true
		switch b.BindType {
		case acl.BindRole:
			g.Roles = append(g.Roles, name)
		case acl.BindPolicy:
			g.Policies = append(g.Policies, name)
		}
	}
	return g
}
