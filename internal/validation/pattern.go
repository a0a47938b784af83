package validation

import (
	"fmt"
	"regexp"
	"regexp/syntax"
)

// Bounds of a regular expression that a user sends. Counted repetitions are written out when it is compiled, so that a
// short text can become a program of a hundred megabytes; nobody's constraint on an attribute comes near these.
const (
	maxPattern        = 4 << 10 // bytes
	maxPatternProgram = 20_000  // instructions, about
)

// CompilePattern is regexp.Compile for expressions that users send. What it refuses is the user's fault: the caller says
// so by the code of its error.
func CompilePattern(text string) (*regexp.Regexp, error) {
	if len(text) > maxPattern {
		return nil, fmt.Errorf("the regular expression is longer than %d bytes", maxPattern)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if patternSize(tree) > maxPatternProgram {
		return nil, fmt.Errorf("the regular expression is too large: its repetitions make more than %d steps of it", maxPatternProgram)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return re, nil
}

// patternSize guesses how many instructions the expression compiles to, at most a little more than may be.
func patternSize(re *syntax.Regexp) int {
	size := 1
	if re.Op == syntax.OpLiteral {
		size = len(re.Rune)
	}
	for _, sub := range re.Sub {
		size += patternSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		size *= max(re.Min, re.Max, 1)
	}
	return min(size, maxPatternProgram+1)
}
