package jobspec

import (
	"errors"
	"fmt"
	"maps"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

const (
	maxResult = maxLocal // bytes of a function's result, or elements
	maxGuess  = 16 << 20 // bytes that a function may be about to make, by a guess that is too high
	maxCost   = 12       // of bcrypt: a quarter of a second; each more doubles it
)

// withinLimits has each function refuse to make more than a job file can need. Some tell before they begin.
func withinLimits(all map[string]function.Function) map[string]function.Function {
	guesses := map[string]func([]cty.Value) int{
		"format": formatted, "formatlist": formatted, "replace": replaced, "regex_replace": replaced, "join": joined, "indent": indented,
	}
	out := maps.Clone(all)
	for name, f := range all {
		if !takesExpressions(f) {
			out[name] = limitedFunc(f, guesses[name])
		}
	}
	return out
}

// limitedFunc wraps f with the bounds. The guess is asked before f is called, since a huge result would exhaust the
// server's memory before it could be weighed. Functions that decode their own arguments must not be wrapped.
func limitedFunc(f function.Function, guess func([]cty.Value) int) function.Function {
	return function.New(&function.Spec{
		Params: f.Params(), VarParam: f.VarParam(), Type: f.ReturnTypeForValues,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if guess != nil && guess(args) > maxGuess {
				return cty.DynamicVal, errors.New("the result would be too large")
			}
			v, err := f.Call(args)
			if err == nil && weight(v, maxResult) > maxResult {
				return cty.DynamicVal, fmt.Errorf("the result is larger than %d bytes or elements", maxResult)
			}
			return v, err
		},
	})
}

// textOf is a known text, else "".
func textOf(v cty.Value) string {
	if v, _ = v.Unmark(); !v.IsKnown() || v.IsNull() || v.Type() != cty.String {
		return ""
	}
	return v.AsString()
}

// numberOf is a known number's size, at most a little more than anything may be.
func numberOf(v cty.Value) int {
	if v, _ = v.Unmark(); !v.IsKnown() || v.IsNull() || v.Type() != cty.Number {
		return 0
	}
	n, _ := v.AsBigFloat().Int64()
	return int(min(max(n, -n, 0), maxGuess+1))
}

// elements is how many a known collection has, and 1 for everything else.
func elements(v cty.Value) int {
	if v, _ = v.Unmark(); !v.IsKnown() || v.IsNull() || !v.CanIterateElements() {
		return 1
	}
	return v.LengthInt()
}

// formatted guesses what format and formatlist make: by the widths and precisions in the format, which may stand in an
// argument for a "*", once for each element.
func formatted(args []cty.Value) int {
	if len(args) == 0 {
		return 0
	}
	width, number, digits, times := 0, 0, false, 1
	// The space ends a number that stands last.
	for _, c := range textOf(args[0]) + " " {
		switch {
		case c >= '0' && c <= '9':
			number, digits = min(number*10+int(c-'0'), maxGuess+1), true
		case c == '*':
			// Which argument the star takes is not worked out: the sum of all numbers is no less.
			for _, a := range args[1:] {
				width = min(width+numberOf(a), maxGuess+1)
			}
		case digits:
			width, number, digits = min(width+number, maxGuess+1), 0, false
		}
	}
	for _, a := range args {
		times = max(times, elements(a))
	}
	return min(width*times, maxGuess+1)
}

// replaced guesses what replacing makes: at worst the replacement stands for each byte, or has the whole text in it.
func replaced(args []cty.Value) int {
	if len(args) != 3 {
		return 0
	}
	return (len(textOf(args[0])) + 1) * (len(textOf(args[2])) + 1)
}

// joined guesses what join adds to its lists: the separator once for each element. The elements themselves exist
// already.
func joined(args []cty.Value) int {
	if len(args) == 0 {
		return 0
	}
	count := 0
	for _, a := range args[1:] {
		count += elements(a)
	}
	return count * (len(textOf(args[0])) + 1)
}

// indented guesses what indent adds: the spaces once for each line, of which a text has at most one for each byte.
func indented(args []cty.Value) int {
	if len(args) != 2 {
		return 0
	}
	return numberOf(args[0]) * (len(textOf(args[1])) + 1)
}
