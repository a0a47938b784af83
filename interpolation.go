package drover

import (
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

// unknownRoot returns the root of a reference that nothing will ever resolve, such as ${nodes.x}. A word alone may be a
// variable of the machine's; what is no name at all (a shell's ${X:-1}) is left as it is.
func unknownRoot(ref string) string {
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

// validateInterpolation reports references to unknown things, and variables that need each other.
func (t *Task) validateInterpolation(v *report, at string) {
	for _, key := range slices.Sorted(maps.Keys(t.Env)) {
		v.interpolated(at+".Env["+key+"]", t.Env[key])
	}
	for _, key := range slices.Sorted(maps.Keys(t.Meta)) {
		v.interpolated(at+".Meta["+key+"]", t.Meta[key])
	}
	v.interpolatedIn(at+".Config", t.Config)
	if ring := envCycle(t.Env); len(ring) > 0 {
		v.Addf(at+".Env", "the variables %s need each other: what they are can't be found out", strings.Join(ring, ", "))
	}
}

// interpolated reports references in the text that nothing can resolve. Names without a dot are left alone, because
// they may be variables of the machine.
func (v *report) interpolated(at, text string) {
	for _, ref := range References(text) {
		if root := unknownRoot(ref); root != "" {
			v.Addf(at, "${%s}: there is no %q; known are attr, node, meta, env and NOMAD_… (write $${ for the characters themselves)", ref, root)
		}
	}
}

// interpolatedIn looks at the texts of a driver's configuration.
func (v *report) interpolatedIn(at string, value any) {
	switch value := value.(type) {
	case string:
		v.interpolated(at, value)
	case []any:
		for _, one := range value {
			v.interpolatedIn(at, one)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			v.interpolatedIn(at+"."+key, value[key])
		}
	}
}

// envCycle returns variables that refer to each other in a ring. One that refers to itself does not count: it extends
// the machine's (PATH = "/opt/bin:${PATH}").
func envCycle(env map[string]string) []string {
	const fresh, open, done = 0, 1, 2
	state := map[string]int{}
	var path, ring []string
	var visit func(name string)
	visit = func(name string) {
		state[name] = open
		path = append(path, name)
		for _, ref := range References(env[name]) {
			next := envName(ref)
			if _, own := env[next]; !own || next == name || len(ring) > 0 {
				continue
			}
			switch state[next] {
			case fresh:
				visit(next)
			case open:
				ring = slices.Clone(path[slices.Index(path, next):])
			}
		}
		path = path[:len(path)-1]
		state[name] = done
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if state[name] == fresh && len(ring) == 0 {
			visit(name)
		}
	}
	return ring
}
