package options

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/validation"
)

// Reader reads one map. Keys that were not asked for are problems, see Done.
type Reader struct {
	config   map[string]any
	seen     []string
	problems []error
	path     string    // of the block, with a dot; "" at the top
	asked    *[]string // of the top and all its blocks
}

// New returns a reader of the map.
func New(config map[string]any) *Reader {
	asked := make([]string, 0, usualKeys)
	return &Reader{config: config, seen: make([]string, 0, usualKeys), asked: &asked}
}

// usualKeys are a little more than drivers ask for at the top.
const usualKeys = 32

// Asked lists the keys that were asked for, those of blocks that were there as "block.key".
func (r *Reader) Asked() []string { return distinct(*r.asked) }

// Keys are all that read asks for, those of blocks too, as "block.key": each key is tried as a block.
func Keys(read func(*Reader)) []string {
	all := map[string]bool{}
	var search func(path []string)
	search = func(path []string) {
		keys := map[string]any{}
		for i := len(path) - 1; i >= 0; i-- {
			keys = map[string]any{path[i]: keys}
		}
		r := New(keys)
		read(r)
		for _, k := range r.Asked() {
			if !all[k] {
				all[k] = true
				search(strings.Split(k, "."))
			}
		}
	}
	search(nil)
	return slices.Sorted(maps.Keys(all))
}

func distinct(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }

// Problem notes something wrong; it should begin with its key.
func (r *Reader) Problem(format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf(format, args...)) // a list of problems
}

// Done complains about keys that nobody asked for, and returns all problems. Errors: Invalid.
func (r *Reader) Done() error {
	r.unknown()
	if len(r.problems) > 0 {
		return drover.Errorf(drover.Invalid, "%w", errors.Join(r.problems...))
	}
	return nil
}

// Has tells whether the key was given; null is not.
func (r *Reader) Has(key string) bool { return r.value(key) != nil }

// value notes that the key is known, and returns what was given, nil for nothing.
func (r *Reader) value(key string) any {
	r.seen, *r.asked = append(r.seen, key), append(*r.asked, r.path+key)
	return r.config[key]
}

// scalar is a value as text; ok is false for lists and maps. HCL turns numbers and booleans into strings as well.
func scalar(v any) (text string, ok bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case bool, int, int64:
		return fmt.Sprint(v), true
	default:
		return "", false
	}
}

// Str reads a string, "" if it is missing.
func (r *Reader) Str(key string) string {
	v := r.value(key)
	text, ok := scalar(v)
	if !ok && v != nil {
		r.Problem("%s: must be a string, not %T", key, v)
	}
	return text
}

// Flag reads true or false, false if it is missing.
func (r *Reader) Flag(key string) bool {
	switch v := r.value(key).(type) {
	case nil:
		return false
	case bool:
		return v
	case string: // as interpolation leaves it
		if v == "true" || v == "false" {
			return v == "true"
		}
	}
	r.Problem("%s: must be true or false", key)
	return false
}

const maxExact = 1 << 53 // beyond, a float64 does not hold every whole number

// Num reads a whole number between low and high, 0 if it is missing.
func (r *Reader) Num(key string, low, high int64) int64 {
	var n int64
	switch v := r.value(key).(type) {
	case nil:
		return 0
	case int:
		n = int64(v)
	case int64:
		n = v
	case float64:
		if v != math.Trunc(v) || math.Abs(v) > maxExact {
			r.Problem("%s: must be a whole number", key)
			return 0
		}
		n = int64(v)
	case string:
		parsed, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			r.Problem("%s: must be a number, not %q", key, v)
			return 0
		}
		n = parsed
	default:
		r.Problem("%s: must be a number, not %T", key, v)
		return 0
	}
	if n < low || n > high {
		r.Problem("%s: %d is not between %d and %d", key, n, low, high)
		return 0
	}
	return n
}

// Strs reads a list of strings.
func (r *Reader) Strs(key string) []string {
	switch v := r.value(key).(type) {
	case nil:
		return nil
	case []string:
		return v
	case []any:
		out := make([]string, 0, len(v))
		for _, e := range v {
			s, ok := scalar(e)
			if !ok {
				r.Problem("%s: all elements must be strings, one is %T", key, e)
				return nil
			}
			out = append(out, s)
		}
		return out
	default:
		r.Problem("%s: must be a list of strings, not %T", key, v)
		return nil
	}
}

// Words is Strs for a key that may also be one string.
func (r *Reader) Words(key string) []string {
	if word, one := r.value(key).(string); one {
		return []string{word}
	}
	return r.Strs(key)
}

// Dict reads a map of strings, given as one block or several.
func (r *Reader) Dict(key string) map[string]string {
	out := map[string]string{}
	for _, m := range r.blocks(key) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			text, ok := scalar(m[k])
			if !ok {
				r.Problem("%s: the value of %q must be a string, not %T", key, k, m[k])
				continue
			}
			out[k] = text
		}
	}
	return out
}

// Each reads every block of the key by f, which sees only that block.
func (r *Reader) Each(key string, f func(*Reader)) {
	for _, m := range r.blocks(key) {
		in := &Reader{config: m, path: r.path + key + ".", asked: r.asked}
		f(in)
		in.unknown()
		for _, p := range in.problems {
			r.Problem("%s: %w", key, p)
		}
	}
}

// Block is Each for a key of which there may be one block.
func (r *Reader) Block(key string, f func(*Reader)) {
	if len(r.blocks(key)) > 1 {
		r.Problem("%s: must be one block", key)
		return
	}
	r.Each(key, f)
}

// blocks reads one block or a list of them.
func (r *Reader) blocks(key string) []map[string]any {
	switch v := r.value(key).(type) {
	case nil:
		return nil
	case map[string]any:
		return []map[string]any{v}
	case []map[string]any:
		return v
	case []any:
		var out []map[string]any
		for _, e := range v {
			m, ok := e.(map[string]any)
			if !ok {
				r.Problem("%s: all elements must be blocks, one is %T", key, e)
				return nil
			}
			out = append(out, m)
		}
		return out
	default:
		r.Problem("%s: must be a block, not %T", key, v)
		return nil
	}
}

// unknown complains about keys that were not asked for so far. It comes last, and names the one that was perhaps meant, or all.
func (r *Reader) unknown() {
	for _, key := range slices.Sorted(maps.Keys(r.config)) {
		if !slices.Contains(r.seen, key) {
			known := distinct(r.seen)
			if near := validation.Nearest(key, known); near != "" {
				r.Problem("unknown key %q; did you mean %q?", key, near)
				continue
			}
			r.Problem("unknown key %q; known are %s", key, strings.Join(known, ", "))
		}
	}
}

// Absolute reports whether a path is absolute, missing, or begins with a variable that the node replaces: who checks it once more
// before a start sees that.
func Absolute(path string) bool {
	return path == "" || strings.HasPrefix(path, "/") || strings.HasPrefix(path, "${")
}
