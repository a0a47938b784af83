package answer

import (
	"reflect"
	"strings"

	"github.com/hashicorp/go-bexpr/grammar"
)

// quick makes a predicate of an expression that compares nothing but texts which are fields of what T points to; nil of others. It says
// what go-bexpr says, which looks each field up by its name for each value, and takes a hundred times as long.
func quick[T any](e grammar.Expression) func(T) bool {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil
	}
	holds := quickOf(t.Elem(), e)
	if holds == nil {
		return nil
	}
	return func(v T) bool { return holds(reflect.ValueOf(v).Elem()) }
}

func quickOf(t reflect.Type, e grammar.Expression) func(reflect.Value) bool {
	switch e := e.(type) {
	case *grammar.BinaryExpression:
		left, right := quickOf(t, e.Left), quickOf(t, e.Right)
		switch {
		case left == nil || right == nil:
			return nil
		case e.Operator == grammar.BinaryOpAnd:
			return func(v reflect.Value) bool { return left(v) && right(v) }
		case e.Operator == grammar.BinaryOpOr:
			return func(v reflect.Value) bool { return left(v) || right(v) }
		}
	case *grammar.UnaryExpression:
		if operand := quickOf(t, e.Operand); operand != nil && e.Operator == grammar.UnaryOpNot {
			return func(v reflect.Value) bool { return !operand(v) }
		}
	case *grammar.MatchExpression:
		return quickMatch(t, e)
	}
	return nil
}

func quickMatch(t reflect.Type, e *grammar.MatchExpression) func(reflect.Value) bool {
	if e.Selector.Type != grammar.SelectorTypeBexpr || len(e.Selector.Path) != 1 || e.Value == nil {
		return nil
	}
	field, known := t.FieldByName(e.Selector.Path[0])
	_, named := field.Tag.Lookup("bexpr")
	if !known || named || len(field.Index) != 1 || !field.IsExported() || field.Type.Kind() != reflect.String {
		return nil
	}
	at, value := field.Index[0], e.Value.Raw
	switch e.Operator {
	case grammar.MatchEqual:
		return func(v reflect.Value) bool { return v.Field(at).String() == value }
	case grammar.MatchNotEqual:
		return func(v reflect.Value) bool { return v.Field(at).String() != value }
	case grammar.MatchIn:
		return func(v reflect.Value) bool { return strings.Contains(v.Field(at).String(), value) }
	case grammar.MatchNotIn:
		return func(v reflect.Value) bool { return !strings.Contains(v.Field(at).String(), value) }
	default: // the others are rare, or are not about texts alone
		return nil
	}
}
