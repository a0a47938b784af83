package docker

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// reader takes typed values out of a map as JSON or HCL made it, and collects what is wrong.
type reader struct {
	config   map[string]any
	seen     map[string]bool
	problems []error
}

func newReader(config map[string]any) *reader {
	return &reader{config: config, seen: map[string]bool{}}
}

func (r *reader) problem(format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf(format, args...)) //nolint:err113 // a list of problems
}

func (r *reader) value(key string) any {
	r.seen[key] = true
	return r.config[key]
}

func (r *reader) str(key string) string {
	switch v := r.value(key).(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		r.problem("%s: must be a string, not %T", key, v)
		return ""
	}
}

func (r *reader) flag(key string) bool {
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
	r.problem("%s: must be true or false", key)
	return false
}

func (r *reader) num(key string, low, high int64) int64 {
	var n int64
	switch v := r.value(key).(type) {
	case nil:
		return 0
	case int:
		n = int64(v)
	case int64:
		n = v
	case float64:
		if v != math.Trunc(v) || math.Abs(v) > 1e15 {
			r.problem("%s: must be a whole number", key)
			return 0
		}
		n = int64(v)
	case string:
		parsed, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			r.problem("%s: must be a number, not %q", key, v)
			return 0
		}
		n = parsed
	default:
		r.problem("%s: must be a number, not %T", key, v)
		return 0
	}
	if n < low || n > high {
		r.problem("%s: %d is not between %d and %d", key, n, low, high)
		return 0
	}
	return n
}

func (r *reader) strs(key string) []string {
	switch v := r.value(key).(type) {
	case nil:
		return nil
	case []string:
		return v
	case []any:
		out := make([]string, 0, len(v))
		for _, e := range v {
			s, ok := e.(string)
			if !ok {
				r.problem("%s: all elements must be strings, one is %T", key, e)
				return nil
			}
			out = append(out, s)
		}
		return out
	default:
		r.problem("%s: must be a list of strings, not %T", key, v)
		return nil
	}
}

// dict reads a map of strings, given as one block or several.
func (r *reader) dict(key string) map[string]string {
	out := map[string]string{}
	for _, m := range r.blocks(key) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			switch v := m[k].(type) {
			case string:
				out[k] = v
			case bool, int, int64, float64:
				out[k] = fmt.Sprint(v)
			default:
				r.problem("%s: the value of %q must be a string, not %T", key, k, v)
			}
		}
	}
	return out
}

// blocks reads one block or a list of them.
func (r *reader) blocks(key string) []map[string]any {
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
				r.problem("%s: all elements must be blocks, one is %T", key, e)
				return nil
			}
			out = append(out, m)
		}
		return out
	default:
		r.problem("%s: must be a block, not %T", key, v)
		return nil
	}
}

// each reads every block of the key by f, which sees only that block.
func (r *reader) each(key string, f func(*reader)) {
	for _, m := range r.blocks(key) {
		in := newReader(m)
		f(in)
		in.unknown()
		for _, p := range in.problems {
			r.problem("%s: %w", key, p)
		}
	}
}

// unknown complains about keys that nobody asked for.
func (r *reader) unknown() {
	for _, key := range slices.Sorted(maps.Keys(r.config)) {
		if !r.seen[key] {
			known := slices.Sorted(maps.Keys(r.seen))
			r.problem("unknown key %q; known are %s", key, strings.Join(known, ", "))
		}
	}
}
