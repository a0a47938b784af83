package admission

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/go-bexpr"
	"github.com/hashicorp/go-bexpr/grammar"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/validation"
)

// truth is what is known of a condition: the order is that of "and" and "or".
type truth uint8

const (
	no truth = iota
	maybe
	yes
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// element is what the names of "any" and "all" stand for.
type element struct{ key, value string }

// condition is a part of a compiled expression.
type condition func(v *View, e element) truth

const (
	maxExpression  = 4 << 10 // bytes
	maxComparisons = 64
	maxParse       = 1_000_000 // what go-bexpr tries while it parses: parentheses in each other multiply it
)

// compiler reads an expression from left to right, as its places are told by what was read of its text.
type compiler struct {
	text  string
	at    int               // bytes of the text that were read
	uses  map[string]bool   // fields
	local map[string]string // what the names of "any" or "all" stand for: "key" or "value" of its field
	of    string            // its field
	count int               // comparisons
}

// compile makes a condition of an expression, and says which fields it uses. Errors: Invalid, with line and column.
func compile(text string) (condition, map[string]bool, error) {
	if len(text) > maxExpression {
		return nil, nil, drover.Errorf(drover.Invalid, "it has %d bytes, the limit is %d", len(text), maxExpression)
	}
	text = rawQuotes(text)
	parsed, err := grammar.Parse("", []byte(text), grammar.MaxExpressions(maxParse))
	if err != nil && strings.Contains(err.Error(), "max number of expressions") {
		return nil, nil, drover.Errorf(drover.Invalid, "it has too many parentheses in each other: write several rules instead")
	}
	if err != nil {
		return nil, nil, drover.Errorf(drover.Invalid, "%w", err)
	}
	c := &compiler{text: text, uses: map[string]bool{}}
	made, err := c.expression(parsed)
	return made, c.uses, err
}

// rawQuotes writes quoted texts between `, where that is the same: go-bexpr takes "/etc" for a path of fields.
func rawQuotes(text string) string {
	out := []byte(text)
	for i := 0; i < len(out); i++ {
		quote := out[i]
		if quote != '"' && quote != '`' {
			continue
		}
		end := strings.IndexByte(text[i+1:], quote)
		if end < 0 {
			break
		}
		if end += i + 1; quote == '"' && !strings.ContainsAny(text[i:end], "`\\") {
			out[i], out[end] = '`', '`'
		}
		i = end
	}
	return string(out)
}

func (c *compiler) expression(e any) (condition, error) {
	switch e := e.(type) {
	case *grammar.UnaryExpression:
		in, err := c.expression(e.Operand)
		return func(v *View, x element) truth { return yes - in(v, x) }, err
	case *grammar.BinaryExpression:
		left, err := c.expression(e.Left)
		if err != nil {
			return nil, err
		}
		right, err := c.expression(e.Right)
		if e.Operator == grammar.BinaryOpAnd {
			return func(v *View, x element) truth { return min(left(v, x), right(v, x)) }, err
		}
		return func(v *View, x element) truth { return max(left(v, x), right(v, x)) }, err
	case *grammar.CollectionExpression:
		return c.collection(e)
	case *grammar.MatchExpression:
		return c.comparison(e)
	}
	return nil, drover.Errorf(drover.Invalid, "%T cannot be part of an expression", e)
}

// fault says what is wrong at the next place of the word.
func (c *compiler) fault(word, format string, args ...any) error {
	c.read(word)
	before := c.text[:max(c.at-len(word), 0)]
	line, column := 1+strings.Count(before, "\n"), len(before)-strings.LastIndexByte(before, '\n')
	return drover.Errorf(drover.Invalid, "%d:%d: %s", line, column, fmt.Sprintf(format, args...))
}

// wordBytes are those of names.
const wordBytes = "_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// read goes behind the next place of a word outside of quotes.
func (c *compiler) read(word string) {
	inWord := func(i int) bool {
		return i >= 0 && i < len(c.text) && strings.IndexByte(wordBytes, c.text[i]) >= 0
	}
	for i := c.at; i < len(c.text); i++ {
		if q := c.text[i]; q == '"' || q == '`' {
			end := strings.IndexByte(c.text[i+1:], q)
			if end < 0 {
				return
			}
			i += end + 1
			continue
		}
		if strings.HasPrefix(c.text[i:], word) && !inWord(i-1) && !inWord(i+len(word)) {
			c.at = i + len(word)
			return
		}
	}
}

// kindOf finds the field that a selector begins with. Errors: Invalid.
func (c *compiler) kindOf(s grammar.Selector) (index int, kind reflect.Type, err error) {
	f, ok := viewType.FieldByName(s.Path[0])
	if !ok || !f.IsExported() {
		return 0, nil, c.fault(s.Path[0], "%q is no field of a task", s.Path[0])
	}
	if f.Type.Kind() != reflect.Map && len(s.Path) > 1 {
		return 0, nil, c.fault(s.Path[0], "%s has no %q in it", f.Name, strings.Join(s.Path[1:], "."))
	}
	if len(s.Path) > 2 {
		return 0, nil, c.fault(s.Path[0], "write %s[\"%s\"]", f.Name, strings.Join(s.Path[1:], "."))
	}
	c.uses[f.Name] = true
	return f.Index[0], f.Type, nil
}

var viewType = reflect.TypeFor[View]()

// collection compiles "any" and "all".
func (c *compiler) collection(e *grammar.CollectionExpression) (condition, error) {
	word := e.Selector.Path[0]
	if c.local != nil {
		return nil, c.fault(word, "any and all cannot be within each other")
	}
	index, kind, err := c.kindOf(e.Selector)
	if err != nil {
		return nil, err
	}
	isMap := kind.Kind() == reflect.Map && len(e.Selector.Path) == 1
	if !isMap && kind.Kind() != reflect.Slice {
		return nil, c.fault(word, "%s is no list", word)
	}
	c.read(word)
	b := e.NameBinding
	c.of, c.local = word, map[string]string{b.Value: "value", b.Index: "key", b.Default: "value"}
	if isMap {
		c.local[b.Default] = "key"
	}
	delete(c.local, "")
	if !isMap && b.Index != "" {
		return nil, c.fault(b.Index, "the places of a list have no names: write any %s as %s { … }", word, "x")
	}
	for _, name := range []string{b.Default, b.Index, b.Value} {
		if _, field := viewType.FieldByName(name); field {
			return nil, c.fault(name, "%q is the name of a field", name)
		}
		if name != "" {
			c.read(name)
		}
	}
	in, err := c.expression(e.Inner)
	c.local = nil
	return func(v *View, _ element) truth {
		if _, unknown := v.unknown[word]; unknown {
			return maybe
		}
		all := e.Op == grammar.CollectionOpAll
		result := truthOf(all)
		for _, x := range elements(reflect.ValueOf(v).Elem().Field(index)) {
			if all {
				result = min(result, in(v, x))
			} else {
				result = max(result, in(v, x))
			}
		}
		return result
	}, err
}

// elements are those of a list of texts, or of a map of them.
func elements(of reflect.Value) (out []element) {
	if list, ok := of.Interface().([]string); ok {
		for _, s := range list {
			out = append(out, element{value: s})
		}
		return out
	}
	for key, s := range of.Interface().(map[string]string) { // the other kind of what holds several
		out = append(out, element{key, s})
	}
	return out
}

// comparison compiles a field with an operator and a value.
func (c *compiler) comparison(e *grammar.MatchExpression) (condition, error) {
	word := e.Selector.Path[0]
	if c.count++; c.count > maxComparisons {
		return nil, c.fault(word, "there are more than %d comparisons", maxComparisons)
	}
	if part, ok := c.local[word]; ok {
		if len(e.Selector.Path) > 1 {
			return nil, c.fault(word, "%q is a text and has no parts", word)
		}
		test, err := c.ofText(e)
		if err != nil {
			return nil, err
		}
		c.read(word)
		return func(_ *View, x element) truth {
			if part == "key" {
				return truthOf(test(x.key))
			}
			return truthOf(test(x.value))
		}, nil
	}
	index, kind, err := c.kindOf(e.Selector)
	if err != nil {
		return nil, err
	}
	test, err := c.test(e, kind)
	if err != nil {
		return nil, err
	}
	c.read(word)
	return func(v *View, _ element) truth {
		if _, unknown := v.unknown[word]; unknown {
			return maybe
		}
		return truthOf(test(reflect.ValueOf(v).Elem().Field(index)))
	}, nil
}

// test compiles what a comparison asks of a field's value.
func (c *compiler) test(e *grammar.MatchExpression, kind reflect.Type) (func(reflect.Value) bool, error) {
	word := e.Selector.Path[0]
	switch {
	case kind.Kind() == reflect.String:
		test, err := c.ofText(e)
		return func(v reflect.Value) bool { return test(v.String()) }, err
	case kind.Kind() == reflect.Map && len(e.Selector.Path) == 2:
		test, err := c.ofText(e)
		return func(v reflect.Value) bool {
			s, ok := v.Interface().(map[string]string)[e.Selector.Path[1]]
			if !ok {
				return e.Operator.NotPresentDisposition()
			}
			return test(s)
		}, err
	case kind.Kind() == reflect.Map || kind.Kind() == reflect.Slice:
		return c.ofSeveral(e)
	}
	if e.Operator != grammar.MatchEqual && e.Operator != grammar.MatchNotEqual {
		return nil, c.fault(word, "%s is %s: it can be compared by == and != alone", word, nameOf(kind))
	}
	equal := e.Operator == grammar.MatchEqual
	if kind.Kind() == reflect.Bool {
		want, err := bexpr.CoerceBool(e.Value.Raw)
		if err != nil {
			return nil, c.fault(word, "%s is true or false, not %q", word, e.Value.Raw)
		}
		return func(v reflect.Value) bool { return (v.Interface() == want) == equal }, nil
	}
	want, err := bexpr.CoerceInt64(e.Value.Raw)
	if err != nil {
		return nil, c.fault(word, "%s is a whole number, not %q", word, e.Value.Raw)
	}
	return func(v reflect.Value) bool { return (v.Int() == want) == equal }, nil
}

func nameOf(kind reflect.Type) string {
	if kind.Kind() == reflect.Bool {
		return "true or false"
	}
	return "a number"
}

// ofText compiles what is asked of a text.
func (c *compiler) ofText(e *grammar.MatchExpression) (func(string) bool, error) {
	word := e.Selector.Path[0]
	switch e.Operator {
	case grammar.MatchEqual:
		return func(s string) bool { return s == e.Value.Raw }, nil
	case grammar.MatchNotEqual:
		return func(s string) bool { return s != e.Value.Raw }, nil
	case grammar.MatchIn:
		return func(s string) bool { return strings.Contains(s, e.Value.Raw) }, nil
	case grammar.MatchNotIn:
		return func(s string) bool { return !strings.Contains(s, e.Value.Raw) }, nil
	case grammar.MatchIsEmpty:
		return func(s string) bool { return s == "" }, nil
	case grammar.MatchIsNotEmpty:
		return func(s string) bool { return s != "" }, nil
	case grammar.MatchMatches, grammar.MatchNotMatches:
		pattern, err := validation.CompilePattern(e.Value.Raw)
		if err != nil {
			return nil, c.fault(word, "the pattern for %s: %s", word, err)
		}
		return matching(pattern, e.Operator == grammar.MatchMatches), nil
	default:
		return nil, c.fault(word, "%s is a text and never nil: write is empty", word)
	}
}

func matching(pattern *regexp.Regexp, want bool) func(string) bool {
	return func(s string) bool { return pattern.MatchString(s) == want }
}

// ofSeveral compiles what is asked of a list or, of its keys, a map.
func (c *compiler) ofSeveral(e *grammar.MatchExpression) (func(reflect.Value) bool, error) {
	has := func(v reflect.Value) bool {
		if list, ok := v.Interface().([]string); ok {
			return slices.Contains(list, e.Value.Raw)
		}
		return v.MapIndex(reflect.ValueOf(e.Value.Raw)).IsValid()
	}
	switch e.Operator {
	case grammar.MatchIn:
		return has, nil
	case grammar.MatchNotIn:
		return func(v reflect.Value) bool { return !has(v) }, nil
	case grammar.MatchIsEmpty:
		return func(v reflect.Value) bool { return v.Len() == 0 }, nil
	case grammar.MatchIsNotEmpty:
		return func(v reflect.Value) bool { return v.Len() > 0 }, nil
	default:
		word := e.Selector.Path[0]
		return nil, c.fault(word, "%s holds several: ask for one by in, or for any of them by any %s as x { … }", word, word)
	}
}
