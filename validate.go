package drover

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/validation"
)

// Validate reports everything that is wrong with a canonicalized job, joined, each with its path in the job, as one
// Invalid error; nil if it can be registered. Drivers check Task.Config themselves.
func (j *Job) Validate() error {
	v := &report{}
	j.validate(v)
	if err := v.Err(); err != nil {
		return Errorf(Invalid, "job validation: %w", err)
	}
	return nil
}

// report is a validation.Report with the rules that several blocks share.
type report struct{ validation.Report }

// readable refuses other names.
func (v *report) readable(path, name string) {
	v.Check(readable(name), path, "must be UTF-8 without control characters other than tabs and line ends, got %q", name)
}

// id refuses ids that stand for another place in a path. Slashes are fine: the ids of dispatched jobs have them.
func (v *report) id(path, id string) {
	v.readable(path, id)
	parts := strings.Split(id, "/")
	v.Check(!slices.Contains(parts, ".") && !slices.Contains(parts, ".."), path, `must not have "." or ".." between its slashes, got %q`, id)
}

// readable reports whether a name says nothing to a terminal but itself. Tabs and line ends are fine: Nomad's ids have them, and whoever
// prints a name makes one line of it.
func readable(name string) bool {
	acts := func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\t\r\n", r) }
	return utf8.ValidString(name) && strings.IndexFunc(name, acts) < 0
}

// nameOr returns how a part of the job is called in a message: by its name, or by its place in the list if it has none.
// A name that could disturb a terminal is quoted.
func nameOr(name string, i int) string {
	if name == "" {
		return fmt.Sprint(i)
	}
	if !readable(name) {
		return strconv.Quote(name)
	}
	return name
}

// inAllocation reports whether a path from the task's folder stays in that of the allocation: "../alloc/x" does.
func inAllocation(p string) bool { return staysInside("task/" + p) }

// staysInside reports whether a relative path with interpolation cannot climb out of its folder. Absolute paths are
// taken as relative to the folder, as Nomad does.
func staysInside(p string) bool {
	rel := strings.TrimPrefix(strings.ReplaceAll(p, "${", ""), "/")
	return !strings.ContainsRune(p, 0) && (rel == "" || filepath.IsLocal(rel))
}

// maxAmount bounds every amount that a job can ask for, so that sums of them fit.
const maxAmount = 1<<31 - 1
