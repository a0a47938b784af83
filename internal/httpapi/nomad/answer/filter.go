package answer

import (
	"errors"

	"github.com/hashicorp/go-bexpr"
	"github.com/hashicorp/go-bexpr/grammar"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/validation"
)

// maxExpressions bounds what go-bexpr tries while it parses.
const maxExpressions = 100_000

// maxFilter bounds a filter's text, in bytes.
const maxFilter = 8 << 10

// Compile makes a predicate of a go-bexpr expression over T's exported fields; "" keeps all. Errors, also of the
// predicate: Invalid.
func Compile[T any](expression string) (func(T) (bool, error), error) {
	if expression == "" {
		return func(T) (bool, error) { return true, nil }, nil
	}
	if len(expression) > maxFilter {
		return nil, drover.Errorf(drover.Invalid, "the filter expression is longer than %d bytes", maxFilter)
	}
	parsed, err := checkPatterns(expression)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "failed to read filter expression: %w", err)
	}
	if holds := quick[T](parsed); holds != nil {
		return func(v T) (bool, error) { return holds(v), nil }, nil
	}
	e, err := bexpr.CreateEvaluator(expression, bexpr.WithMaxExpressions(maxExpressions))
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "failed to read filter expression: %w", err)
	}
	return func(v T) (bool, error) {
		ok, err := e.Evaluate(v)
		if err != nil {
			return false, drover.Errorf(drover.Invalid, "failed to filter: %w", err)
		}
		return ok, nil
	}, nil
}

// checkPatterns refuses regular expressions that would grow beyond bounds: go-bexpr compiles each as it stands. It returns what it read;
// nil of an expression that does not parse, which is left to go-bexpr to report.
func checkPatterns(expression string) (grammar.Expression, error) {
	parsed, err := grammar.Parse("", []byte(expression), grammar.MaxExpressions(maxExpressions))
	if err != nil {
		return nil, nil //nolint:nilerr // whoever evaluates it says so
	}
	e, _ := parsed.(grammar.Expression)
	return e, patternsIn(parsed)
}

// patternsIn checks the patterns of an expression and of all below it. Errors: Invalid, joined.
func patternsIn(e any) error {
	switch e := e.(type) {
	case *grammar.BinaryExpression:
		return errors.Join(patternsIn(e.Left), patternsIn(e.Right))
	case *grammar.UnaryExpression:
		return patternsIn(e.Operand)
	case *grammar.CollectionExpression:
		return patternsIn(e.Inner)
	case *grammar.MatchExpression:
		if e.Value != nil && (e.Operator == grammar.MatchMatches || e.Operator == grammar.MatchNotMatches) {
			if _, err := validation.CompilePattern(e.Value.Raw); err != nil {
				return drover.Errorf(drover.Invalid, "%w", err)
			}
		}
	}
	return nil
}
