package rendering

import (
	"fmt"
	"strconv"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/text"

	"github.com/drover-project/drover"
)

// functions are those of consul-template that need no other service, and text/template's own as far as they make text.
// What makes text draws on the budget.
func functions(env map[string]string, b *budget) template.FuncMap {
	return template.FuncMap{
		"env": func(k string) string { return env[k] }, "mustEnv": mustEnv(env),
		"envOrDefault": func(k, d string) string {
			if v, ok := env[k]; ok && v != "" {
				return v
			}
			return d
		},
		"key": unavailable("key"), "keyOrDefault": unavailable("keyOrDefault"),
		"secret": unavailable("secret"), "service": unavailable("service"),
		"nomadVar": unavailable("nomadVar"), "nomadService": unavailable("nomadService"),
		"toUpper":    func(s string) (string, error) { return b.text(strings.ToUpper(s)) },
		"toLower":    func(s string) (string, error) { return b.text(strings.ToLower(s)) },
		"trimSpace":  strings.TrimSpace,
		"split":      b.split,
		"join":       b.join,
		"replaceAll": b.replaceAll,
		"contains":   func(sub, s string) bool { return strings.Contains(s, sub) },
		"parseInt":   func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) },
		"parseBool":  strconv.ParseBool,
		"add":        func(b, a int64) int64 { return a + b },
		"subtract":   func(b, a int64) int64 { return a - b },

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
	}
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
