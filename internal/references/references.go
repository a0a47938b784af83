package references

import (
	"maps"
	"slices"
	"strings"
)

// In returns what is between ${ and } in s, trimmed; "$${" stands for itself.
func In(s string) []string {
	var out []string
	for {
		at := strings.Index(s, "${")
		if at < 0 {
			return out
		}
		escaped := at > 0 && s[at-1] == '$'
		s = s[at+2:]
		end := strings.IndexByte(s, '}')
		if end < 0 {
			return out
		}
		if !escaped {
			out = append(out, strings.TrimSpace(s[:end]))
		}
		s = s[end+1:]
	}
}

// Variable returns the variable that a reference names: NAME or env["NAME"]; "" for what is none.
func Variable(ref string) string {
	if inner, ok := strings.CutPrefix(ref, "env["); ok {
		return strings.Trim(strings.TrimSuffix(inner, "]"), `"`)
	}
	if strings.ContainsAny(ref, ".[ ") {
		return ""
	}
	return ref
}

// Foreign returns the root of a reference that no node will ever resolve, such as ${nodes.x}. A word alone may be a
// variable of the task's; what is no name at all (a shell's ${X:-1}) is left as it is.
func Foreign(ref string) string {
	root, rest, dotted := strings.Cut(ref, ".")
	plain := func(r rune) bool {
		return r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	}
	if !dotted || rest == "" || root == "" || strings.ContainsFunc(root, plain) {
		return ""
	}
	switch root {
	case "attr", "node", "meta", "env", "device":
		return ""
	}
	return root
}

// Order lists variables in an order in which each comes behind those that it refers to, and returns variables that refer
// to each other in a ring. One that refers to itself does not count: it extends what was there before
// (PATH = "/opt/bin:${PATH}").
func Order(env map[string]string) (order, ring []string) {
	const fresh, open, done = 0, 1, 2
	state := map[string]int{}
	var path []string
	var visit func(name string)
	visit = func(name string) {
		state[name] = open
		path = append(path, name)
		for _, ref := range In(env[name]) {
			next := Variable(ref)
			if _, own := env[next]; !own || next == name {
				continue
			}
			switch state[next] {
			case fresh:
				visit(next)
			case open:
				if len(ring) == 0 {
					ring = slices.Clone(path[slices.Index(path, next):])
				}
			}
		}
		path = path[:len(path)-1]
		state[name] = done
		order = append(order, name)
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if state[name] == fresh {
			visit(name)
		}
	}
	return order, ring
}
