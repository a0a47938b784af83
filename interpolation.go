package drover

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// References returns what is between ${ and } in s, trimmed; "$${" stands for itself.
func References(s string) []string {
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

// envName returns the variable that a reference names: NAME or env["NAME"]; "" for what is none.
func envName(ref string) string {
	if inner, ok := strings.CutPrefix(ref, "env["); ok {
		return strings.Trim(strings.TrimSuffix(inner, "]"), `"`)
	}
	if strings.ContainsAny(ref, ".[ ") {
		return ""
	}
	return ref
}

// foreignRoot returns the root of a reference that no node will ever resolve, such as ${nodes.x}. A word alone may be a
// variable of the task's; what is no name at all (a shell's ${X:-1}) is left as it is.
func foreignRoot(ref string) string {
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

// unresolvable says which references of the task no node can resolve, a sentence each: they stay as they are written.
func (t *Task) unresolvable(at string) (out []string) {
	look := func(at, text string) {
		for _, ref := range References(text) {
			if root := foreignRoot(ref); root != "" {
				out = append(out, fmt.Sprintf("%s: ${%s} stays as it is: there is no %q; known are attr, node, meta, env and NOMAD_…", at, ref, root))
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(t.Env)) {
		look(at+": env "+key, t.Env[key])
	}
	for _, key := range slices.Sorted(maps.Keys(t.Meta)) {
		look(at+": meta "+key, t.Meta[key])
	}
	texts(at+": config", t.Config, look)
	return out
}

// texts calls f with each text in a driver's configuration, and where it stands.
func texts(at string, value any, f func(at, text string)) {
	switch value := value.(type) {
	case string:
		f(at, value)
	case []any:
		for _, one := range value {
			texts(at, one, f)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			texts(at+"."+key, value[key], f)
		}
	}
}

// validateEnv reports variables that need each other.
func (t *Task) validateEnv(v *report, at string) {
	if _, ring := envOrder(t.Env); len(ring) > 0 {
		v.Addf(at+".Env", "the variables %s need each other: what they are can't be found out", strings.Join(ring, ", "))
	}
}

// EnvOrder lists the variables in an order in which each comes behind those that it refers to.
func EnvOrder(env map[string]string) []string {
	order, _ := envOrder(env)
	return order
}

// envOrder is EnvOrder, and returns variables that refer to each other in a ring. One that refers to itself does not
// count: it extends what the task had before (PATH = "/opt/bin:${PATH}").
func envOrder(env map[string]string) (order, ring []string) {
	const fresh, open, done = 0, 1, 2
	state := map[string]int{}
	var path []string
	var visit func(name string)
	visit = func(name string) {
		state[name] = open
		path = append(path, name)
		for _, ref := range References(env[name]) {
			next := envName(ref)
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
