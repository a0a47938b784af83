package acl

import (
	"fmt"
	"io"
)

// Secret is a credential. It is JSON as any string, and no formatting verb prints it; convert it to a string where it has to be seen.
type Secret string

// redacted stands where a secret would be printed.
const redacted = "(secret)"

// Format implements fmt.Formatter for all verbs. The empty secret prints as the empty string, so that its absence is seen.
func (s Secret) Format(w fmt.State, _ rune) {
	if s != "" {
		_, _ = io.WriteString(w, redacted) // a fmt.State takes all that is written
	}
}

// String is Format's text. It is there for who calls it without package fmt.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}
