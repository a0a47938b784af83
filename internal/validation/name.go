package validation

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/references"
)

// What names are made of.
const (
	Digits  = "0123456789"
	Letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// Readable refuses other names.
func (r *Report) Readable(path, name string) {
	r.Check(Readable(name), path, "must be UTF-8 without control characters other than tabs and line ends, got %q", name)
}

// ID refuses ids that stand for another place in a path. Slashes are fine: the ids of dispatched jobs have them.
func (r *Report) ID(path, id string) {
	r.Readable(path, id)
	parts := strings.Split(id, "/")
	r.Check(!slices.Contains(parts, ".") && !slices.Contains(parts, ".."), path, `must not have "." or ".." between its slashes, got %q`, id)
}

// Interpolated reports references that no node can resolve: nothing would ever match. Names without a dot are left
// alone.
func (r *Report) Interpolated(at, text string) {
	for _, ref := range references.In(text) {
		if root := references.Foreign(ref); root != "" {
			r.Addf(at, "${%s}: there is no %q; known are attr, node, meta, env and NOMAD_…", ref, root)
		}
	}
}

// Readable reports whether a name says nothing to a terminal but itself. Tabs and line ends are fine: Nomad's ids have them, and whoever
// prints a name makes one line of it.
func Readable(name string) bool {
	acts := func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\t\r\n", r) }
	return utf8.ValidString(name) && strings.IndexFunc(name, acts) < 0
}

// NameOr returns how a part of a job is called in a message: by its name, or by its place in the list if it has none.
// A name that could disturb a terminal is quoted.
func NameOr(name string, i int) string {
	if name == "" {
		return fmt.Sprint(i)
	}
	if !Readable(name) {
		return strconv.Quote(name)
	}
	return name
}

// InAllocation reports whether a path from a task's folder stays in that of the allocation: "../alloc/x" does.
func InAllocation(p string) bool { return StaysInside("task/" + p) }

// StaysInside reports whether a relative path with interpolation cannot climb out of its folder. Absolute paths are
// taken as relative to the folder, as Nomad does.
func StaysInside(p string) bool {
	rel := strings.TrimPrefix(strings.ReplaceAll(p, "${", ""), "/")
	return !strings.ContainsRune(p, 0) && (rel == "" || filepath.IsLocal(rel))
}
