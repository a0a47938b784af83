package rendering

import (
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	template "github.com/DataDog/datadog-agent/pkg/template/text"
	"github.com/Masterminds/sprig/v3"
	"github.com/davecgh/go-spew/spew"
	"golang.org/x/text/cases"
	"golang.org/x/text/language"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// functions are those of consul-template that need no other service, and text/template's own as far as they make text.
// What makes text draws on the budget.
func functions(r Request, t *template.Template, b *budget) template.FuncMap {
	out := template.FuncMap{}
	for name, f := range sprig.GenericFuncMap() {
		out["sprig_"+name] = f
	}
	out["sprig_env"] = func(k string) string { return r.Env[k] }
	out["sprig_expandenv"] = func(s string) string { return os.Expand(s, func(k string) string { return r.Env[k] }) }
	for _, more := range []template.FuncMap{
		r.environment(), b.texts(), b.encodings(), b.printing(), calculations(), parsing(), collections(),
	} {
		maps.Copy(out, more)
	}
	kept := scratch{}
	out["scratch"] = func() scratch { return kept }
	out["executeTemplate"] = func(name string, data ...any) (string, error) { return execute(t, name, data) }
	for _, name := range needConsul {
		out[name] = unavailable(name, "needs Consul, with which Drover does not work: there are nomadVar and nomadService")
	}
	for _, name := range needVault {
		out[name] = unavailable(name, "needs Vault, with which Drover does not work: there is nomadVar")
	}
	for _, name := range []string{"plugin", "writeToFile", "sockaddr"} {
		out[name] = unavailable(name, "is disabled: templates neither run programs, nor write other files, nor look at the machine")
	}
	for name := range out {
		if slices.ContainsFunc(r.Deny, func(pattern string) bool { ok, err := path.Match(pattern, name); return ok || err != nil }) {
			out[name] = unavailable(name, "is disabled on this node (client.template.function_denylist)")
		}
	}
	return out
}

// What consul-template asks services that are not there.
var (
	needConsul = []string{
		"datacenters", "exportedServices", "importedServices", "key", "keyExists", "keyOrDefault", "ls", "safeLs", "node", "nodes",
		"partitions", "peerings", "service", "connect", "services", "tree", "safeTree", "caRoots", "caLeaf", "byKey", "explode",
	}
	needVault = []string{"secret", "secrets", "pkiCert"}
)

// unavailable is a function that always fails.
func unavailable(name, why string) func(...any) (string, error) {
	return func(...any) (string, error) {
		return "", drover.Errorf(drover.NotImplemented, "the template function %q %s", name, why)
	}
}

// environment is what tells of the task's environment.
func (r Request) environment() template.FuncMap {
	return template.FuncMap{
		"env": func(k string) string { return r.Env[k] }, "mustEnv": mustEnv(r.Env),
		"envOrDefault": func(k, d string) string {
			if v, ok := r.Env[k]; ok {
				return v
			}
			return d
		},
		"timestamp": timestamp,
	}
}

// timestamp is the time as RFC 3339 or in a layout of Go, or the seconds since 1970 for "unix".
func timestamp(layout ...string) (string, error) {
	now := clock.Wall{}.Now().UTC()
	switch {
	case len(layout) == 0:
		return now.Format(time.RFC3339), nil
	case len(layout) > 1:
		return "", drover.Errorf(drover.Invalid, "timestamp: takes one layout or none, got %d", len(layout))
	case layout[0] == "unix":
		return strconv.FormatInt(now.Unix(), 10), nil
	}
	return now.Format(layout[0]), nil
}

// texts are functions of texts.
func (b *budget) texts() template.FuncMap {
	return template.FuncMap{
		"toUpper": func(s string) (string, error) { return b.text(strings.ToUpper(s)) },
		"toLower": func(s string) (string, error) { return b.text(strings.ToLower(s)) },
		"toTitle": func(s string) (string, error) { return b.text(cases.Title(language.Und, cases.NoLower).String(s)) },
		"trim":    func(cut, s string) string { return strings.Trim(s, cut) }, "trimSpace": strings.TrimSpace,
		"trimPrefix": func(prefix, s string) string { return strings.TrimPrefix(s, prefix) },
		"trimSuffix": func(suffix, s string) string { return strings.TrimSuffix(s, suffix) },
		"split":      b.split, "splitToMap": b.splitToMap, "join": b.join, "replaceAll": b.replaceAll, "indent": b.indent,
		"regexReplaceAll": func(re, by, s string) (string, error) {
			compiled, err := regexp.Compile(re)
			if err != nil {
				return "", err
			}
			return b.text(compiled.ReplaceAllString(s, by))
		},
		"regexMatch": regexp.MatchString,
	}
}

// printing is text/template's own.
func (b *budget) printing() template.FuncMap {
	return template.FuncMap{
		"print":   func(args ...any) (string, error) { return b.made(args, func() string { return fmt.Sprint(args...) }) },
		"println": func(args ...any) (string, error) { return b.made(args, func() string { return fmt.Sprintln(args...) }) },
		"printf":  b.printf,
		"html": func(args ...any) (string, error) {
			return b.made(args, func() string { return template.HTMLEscaper(args...) })
		},
		"js": func(args ...any) (string, error) {
			return b.made(args, func() string { return template.JSEscaper(args...) })
		},
		"urlquery": func(args ...any) (string, error) {
			return b.made(args, func() string { return template.URLQueryEscaper(args...) })
		},
		"spew_sdump":   func(args ...any) (string, error) { return b.text(spew.Sdump(args...)) },
		"spew_sprintf": func(format string, args ...any) (string, error) { return b.text(spew.Sprintf(format, args...)) },
		// Those that would print elsewhere have nowhere to.
		"spew_dump": func(...any) string { return "" }, "spew_printf": func(string, ...any) string { return "" },
	}
}

// execute renders a template that this one defines.
func execute(t *template.Template, name string, data []any) (string, error) {
	var dot any
	switch len(data) {
	case 0:
	case 1:
		dot = data[0]
	default:
		return "", drover.Errorf(drover.Invalid, "executeTemplate: takes a name and at most one value, got %d", len(data))
	}
	out := &limited{left: Max}
	err := t.ExecuteTemplate(out, name, dot)
	return out.String(), err
}

// maxText bounds the text that a rendering makes in all its steps together, in bytes.
const maxText = 4 * Max

// budget is what of that is left.
type budget struct{ left int }

// take counts n bytes, before or after they are made. Errors: TooLarge for one text over Max, or all together over
// maxText.
func (b *budget) take(n int) error {
	if n > Max || n > b.left {
		return drover.Errorf(drover.TooLarge, "it makes texts of more than %d bytes, or of more than %d together", Max, maxText)
	}
	b.left -= n
	return nil
}

// text counts a text and returns it.
func (b *budget) text(s string) (string, error) { return s, b.take(len(s)) }

// made is text that has all of the arguments in it.
func (b *budget) made(args []any, f func() string) (string, error) {
	size := 0
	for _, a := range args {
		size += length(a)
	}
	if size > Max { // before it is there
		return "", b.take(size)
	}
	return b.text(f())
}

// length is about how many bytes of text a value makes. Numbers and the like count as one, as they cannot be long.
func length(v any) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case []string:
		n := len(v)
		for _, s := range v {
			n += len(s)
		}
		return n
	}
	return 1
}

// printf also counts the widths and precisions that the format asks for: each is up to a million characters.
func (b *budget) printf(format string, args ...any) (string, error) {
	if n := widths(format, args); n > Max {
		return "", b.take(n)
	}
	return b.made(append([]any{format}, args...), func() string { return fmt.Sprintf(format, args...) })
}

// widths adds up the numbers in a format, which is at least the space that its verbs can fill. A "*" takes its width
// from an argument: as it is not known which one, all integers among them count each time.
func widths(format string, args []any) int {
	total, number, inside := 0, 0, false
	for _, c := range format {
		switch {
		case c == '%':
			inside, number = !inside, 0
		case !inside:
		case c >= '0' && c <= '9':
			number = min(number*10+int(c-'0'), Max)
		case c == '*':
			for _, a := range args {
				if n, ok := a.(int); ok {
					total += min(max(n, -n), Max)
				}
			}
		case strings.ContainsRune("+-# .[]", c):
			total, number = total+number, 0
		default: // the verb
			total, number, inside = total+number, 0, false
		}
		if total > Max {
			break
		}
	}
	return total
}

// split counts only the parts' headers: their text is shared with s.
func (b *budget) split(sep, s string) ([]string, error) {
	const header = 16 // bytes of a part beside its text
	if s = strings.TrimSpace(s); s == "" {
		return []string{}, nil
	}
	n := strings.Count(s, sep)
	if err := b.take(header * n); err != nil {
		return nil, err
	}
	return strings.Split(s, sep), nil
}

// join counts the result before it is made.
func (b *budget) join(sep string, a []string) (string, error) {
	if err := b.take(length(a) + len(sep)*len(a)); err != nil {
		return "", err
	}
	return strings.Join(a, sep), nil
}

// replaceAll computes the length of the result first, because a short text in many places can make a huge one.
func (b *budget) replaceAll(from, to, s string) (string, error) {
	if n := len(s) + strings.Count(s, from)*(len(to)-len(from)); n > Max {
		return "", b.take(n)
	}
	return b.text(strings.ReplaceAll(s, from, to))
}

// splitToMap splits, and each part once more.
func (b *budget) splitToMap(sep, inner, s string) (map[string]string, error) {
	parts, err := b.split(sep, s)
	out := map[string]string{}
	for _, p := range parts {
		if k, v, found := strings.Cut(p, inner); found {
			out[k] = v
		}
	}
	return out, err
}

// indent begins each line that has text with so many spaces.
func (b *budget) indent(spaces int, s string) (string, error) {
	if spaces < 0 {
		return "", drover.Errorf(drover.Invalid, "indent: the number of spaces must not be negative, got %d", spaces)
	}
	if n := len(s) + (strings.Count(s, "\n")+1)*spaces; n > Max || spaces > Max {
		return "", b.take(Max + 1)
	}
	prefix := strings.Repeat(" ", spaces)
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if l != "" {
			lines[i] = prefix + l
		}
	}
	return b.text(strings.Join(lines, "\n"))
}
