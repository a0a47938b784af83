package validation

import (
	"errors"
	"fmt"
	"strings"
)

// Report is what was found so far. Its zero value is ready; it is for one goroutine.
type Report struct{ problems []error }

// Addf adds a problem of the field at path.
func (r *Report) Addf(path, format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf("%s: %s", path, fmt.Sprintf(format, args...)))
}

// Check adds a problem unless ok.
func (r *Report) Check(ok bool, path, format string, args ...any) {
	if !ok {
		r.Addf(path, format, args...)
	}
}

// Len returns how many problems there are.
func (r *Report) Len() int { return len(r.problems) }

// Err joins the problems, one a line; nil if there are none.
func (r *Report) Err() error { return errors.Join(r.problems...) }

// IsName reports whether s matches ^[a-zA-Z0-9._-]{1,128}$. It is written by hand: the vocabulary is linked into every
// drover-init, where a regular expression made at start costs half a millisecond and 120 kB.
func IsName(s string) bool {
	other := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
	}
	return len(s) >= 1 && len(s) <= 128 && strings.IndexFunc(s, other) < 0
}
