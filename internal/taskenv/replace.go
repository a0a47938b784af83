package taskenv

import "strings"

// Replace interpolates ${…} once: what a value expands to is not looked at again, so nothing can be cyclic. What is
// unknown stays as it is, for the shell that may read it; "$${" stands for "${". What gets too long stays too, see Err.
func (e *Env) Replace(s string) string {
	if !strings.Contains(s, "${") {
		return s
	}
	if e.made.Load() > maxTexts {
		return s // Err says so
	}
	whole := s
	var b strings.Builder
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			break
		}
		if i > 0 && s[i-1] == '$' {
			b.WriteString(s[:i-1])
			b.WriteString("${")
			s = s[i+2:]
			continue
		}
		end := strings.IndexByte(s[i:], '}')
		if end < 0 {
			break
		}
		b.WriteString(s[:i])
		if v, ok := e.lookup(strings.TrimSpace(s[i+2 : i+end])); ok {
			b.WriteString(v)
		} else {
			b.WriteString(s[i : i+end+1])
		}
		s = s[i+end+1:]
		if b.Len() > maxText {
			e.made.Add(maxTexts)
			return whole
		}
	}
	b.WriteString(s)
	e.made.Add(int64(b.Len()))
	return b.String()
}

// lookup finds the value for a name between the braces: env["X"] and env.X are variables only, a bare name a variable or
// a value of the node. A variable hides the node's value of the same name.
func (e *Env) lookup(name string) (string, bool) {
	if inner, ok := strings.CutPrefix(name, `env["`); ok {
		v, found := e.vars[strings.TrimSuffix(inner, `"]`)]
		return v, found
	}
	if inner, ok := strings.CutPrefix(name, "env."); ok {
		v, found := e.vars[inner]
		return v, found
	}
	if v, ok := e.vars[name]; ok {
		return v, true
	}
	return e.node.Lookup(name)
}

// ReplaceAny interpolates every string in a driver's configuration, keys too; the input is not changed.
func (e *Env) ReplaceAny(v any) any {
	switch v := v.(type) {
	case string:
		return e.Replace(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = e.ReplaceAny(v[i])
		}
		return out
	case []string:
		out := make([]any, len(v))
		for i := range v {
			out[i] = e.Replace(v[i])
		}
		return out
	case []map[string]any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = e.ReplaceAny(v[i])
		}
		return out
	case map[string]any:
		return e.ReplaceConfig(v)
	case map[string]string:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[e.Replace(k)] = e.Replace(x)
		}
		return out
	}
	return v
}

// ReplaceConfig is ReplaceAny for a whole configuration.
func (e *Env) ReplaceConfig(config map[string]any) map[string]any {
	out := make(map[string]any, len(config))
	for k, v := range config {
		out[e.Replace(k)] = e.ReplaceAny(v)
	}
	return out
}
