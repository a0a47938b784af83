package lazyregexp

import (
	"os"
	"regexp"
	"strings"
	"sync"
)

// inTest compiles at once, so that each test of a package finds an expression that is none.
var inTest = len(os.Args) > 0 && strings.HasSuffix(strings.TrimSuffix(os.Args[0], ".exe"), ".test")

// New returns what compiles the expression once. It panics as regexp.MustCompile does: in tests at once, else at the first use.
func New(expression string) func() *regexp.Regexp {
	get := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
	if inTest {
		get()
	}
	return get
}
