package rendering

import (
	"bytes"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	template "github.com/DataDog/datadog-agent/pkg/template/text"
	"go.yaml.in/yaml/v3"

	"github.com/drover-project/drover"
)

// parsing makes values of texts. An empty text is a zero or an empty map, since in consul-template it stands for what is not there yet.
func parsing() template.FuncMap {
	return template.FuncMap{
		"parseBool":  orZero(strconv.ParseBool),
		"parseInt":   orZero(func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }),
		"parseUint":  orZero(func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) }),
		"parseFloat": orZero(func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }),
		"parseJSON":  decoded(json.Unmarshal), "parseYAML": decoded(yaml.Unmarshal),
	}
}

func orZero[T any](parse func(string) (T, error)) func(string) (T, error) {
	return func(s string) (out T, err error) {
		if s == "" {
			return out, nil
		}
		return parse(s)
	}
}

func decoded(f func([]byte, any) error) func(string) (any, error) {
	return func(s string) (out any, err error) {
		if s == "" {
			return map[string]any{}, nil
		}
		return out, f([]byte(s), &out)
	}
}

// encodings make texts of values and of texts.
func (b *budget) encodings() template.FuncMap {
	sum := func(s string) string { x := sha256.Sum256([]byte(s)); return hex.EncodeToString(x[:]) }
	return template.FuncMap{
		"base64Encode":    func(s string) (string, error) { return b.text(base64.StdEncoding.EncodeToString([]byte(s))) },
		"base64URLEncode": func(s string) (string, error) { return b.text(base64.URLEncoding.EncodeToString([]byte(s))) },
		"base64Decode":    func(s string) (string, error) { return b.decode(base64.StdEncoding, s) },
		"base64URLDecode": func(s string) (string, error) { return b.decode(base64.URLEncoding, s) },
		"sha256Hex":       sum,
		"md5sum":          func(s string) string { x := md5.Sum([]byte(s)); return hex.EncodeToString(x[:]) },
		"hmacSHA256Hex": func(message, key string) string {
			h := hmac.New(sha256.New, []byte(key))
			h.Write([]byte(message))
			return hex.EncodeToString(h.Sum(nil))
		},
		"toJSON":                func(v any) (string, error) { return b.json(v, true, "") },
		"toJSONPretty":          func(v any) (string, error) { return b.json(v, true, "  ") },
		"toUnescapedJSON":       func(v any) (string, error) { return b.json(v, false, "") },
		"toUnescapedJSONPretty": func(v any) (string, error) { return b.json(v, false, "  ") },
		"toYAML": func(v any) (string, error) {
			var out bytes.Buffer
			e := yaml.NewEncoder(&out)
			e.SetIndent(2)
			if err := e.Encode(plain(v)); err != nil {
				return "", err
			}
			return b.text(strings.TrimSpace(out.String()))
		},
		"toTOML": func(v any) (string, error) {
			var out bytes.Buffer
			if err := toml.NewEncoder(&out).Encode(plain(v)); err != nil {
				return "", err
			}
			return b.text(strings.TrimSpace(out.String()))
		},
	}
}

// plain is the value as encoders take it that know nothing of an item.
func plain(v any) any {
	switch v := v.(type) {
	case items:
		all, _ := v.ask("ItemsMap")
		return all
	case item:
		return v.Value
	}
	return v
}

func (b *budget) decode(e *base64.Encoding, s string) (string, error) {
	out, err := e.DecodeString(s)
	if err != nil {
		return "", err
	}
	return b.text(string(out))
}

func (b *budget) json(v any, escape bool, indent string) (string, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(escape)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	return b.text(strings.TrimSpace(out.String()))
}

// collections are functions of lists and maps.
func collections() template.FuncMap {
	some := func(otherwise, invert bool) func([]any, any) bool {
		return func(of []any, list any) bool {
			for _, v := range of {
				if in(list, v) != invert {
					return !otherwise
				}
			}
			return otherwise
		}
	}
	return template.FuncMap{
		"in": in, "contains": func(v, list any) bool { return in(list, v) },
		"containsAll": some(true, true), "containsAny": some(false, false),
		"containsNone": some(true, false), "containsNotAll": some(false, true),
		"mergeMap":             func(to, from map[string]any) map[string]any { return merge(to, from, false) },
		"mergeMapWithOverride": func(to, from map[string]any) map[string]any { return merge(to, from, true) },
		"explodeMap":           explode, "loop": loop, "byPort": byPort, "byTag": byTag,
		"byMeta": unavailable("byMeta", "groups services of Consul, with which Drover does not work"),
	}
}

// in reports whether a list has the value, or a text the other one.
func in(list, v any) bool {
	l := reflect.ValueOf(list)
	switch l.Kind() {
	case reflect.String:
		s := reflect.ValueOf(v)
		return s.IsValid() && s.Type() == l.Type() && strings.Contains(l.String(), s.String())
	case reflect.Slice, reflect.Array:
		for i := range l.Len() {
			if same(l.Index(i), reflect.ValueOf(v)) {
				return true
			}
		}
	}
	return false
}

// same compares integers, floats and texts with their like.
func same(a, b reflect.Value) bool {
	if a.IsValid() && a.Kind() == reflect.Interface {
		a = a.Elem()
	}
	switch {
	case !a.IsValid() || !b.IsValid():
		return false
	case a.CanInt() && b.CanInt():
		return a.Int() == b.Int()
	case a.CanFloat() && b.CanFloat():
		return a.Float() == b.Float()
	}
	return a.Kind() == reflect.String && a.Type() == b.Type() && a.String() == b.String()
}

// merge adds to the first map what it lacks or, with override, all that the second has. Zero values count as lacking.
func merge(to, from map[string]any, override bool) map[string]any {
	if to == nil {
		to = map[string]any{}
	}
	for k, v := range from {
		deeper, isMap := v.(map[string]any)
		if mine, ok := to[k].(map[string]any); ok && isMap {
			to[k] = merge(mine, deeper, override)
			continue
		}
		if empty(to[k]) || override && !empty(v) {
			to[k] = v
		}
	}
	return to
}

func empty(v any) bool {
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Map, reflect.Slice:
		return r.Len() == 0
	default:
		return r.IsZero()
	}
}

// explode makes nested maps of one whose keys are paths.
func explode(from map[string]any) (map[string]any, error) {
	out := map[string]any{}
	for _, k := range slices.Sorted(maps.Keys(from)) {
		at, name := out, k
		for {
			top, rest, found := strings.Cut(name, "/")
			if !found {
				break
			}
			if at[top] == nil {
				at[top] = map[string]any{}
			}
			next, ok := at[top].(map[string]any)
			if !ok {
				return nil, drover.Errorf(drover.Invalid, "explodeMap: not a map: %q: %q already has a value", k, top)
			}
			at, name = next, rest
		}
		if name != "" {
			at[name] = from[k]
		}
	}
	return out, nil
}

// loop returns the numbers from 0, or from the first, up to the last, which is not among them.
func loop(args ...any) ([]int64, error) {
	var ends [2]int64
	if len(args) < 1 || len(args) > 2 {
		return nil, drover.Errorf(drover.Invalid, "loop: takes 1 or 2 numbers, got %d", len(args))
	}
	for i, a := range args {
		n, err := integer(a)
		if err != nil {
			return nil, err
		}
		ends[2-len(args)+i] = n
	}
	if ends[1]-ends[0] > maxRounds {
		return nil, drover.Errorf(drover.TooLarge, "its loops go round more than %d times", maxRounds)
	}
	var out []int64
	for n := ends[0]; n < ends[1]; n++ {
		out = append(out, n)
	}
	return out, nil
}

func integer(v any) (int64, error) {
	if s, ok := v.(string); ok {
		return strconv.ParseInt(s, 10, 64)
	}
	n, err := numberOf("loop", v)
	if err == nil && n.kind == reflect.Float64 {
		err = drover.Errorf(drover.Invalid, "loop: wants integers, got %T", v)
	}
	return n.int(), err
}

// byPort groups services by their ports.
func byPort(list []*serviceValue) map[int][]any {
	out := map[int][]any{}
	for _, s := range list {
		out[s.Port] = append(out[s.Port], s)
	}
	return out
}

// byTag groups services by their tags: what nomadService returns, or nomadServices.
func byTag(list any) (map[string][]any, error) {
	out := map[string][]any{}
	add := func(t tags, s any) {
		for _, tag := range t {
			out[tag] = append(out[tag], s)
		}
	}
	switch list := list.(type) {
	case nil:
	case []*serviceValue:
		for _, s := range list {
			add(s.Tags, s)
		}
	case []*snippet:
		for _, s := range list {
			add(s.Tags, s)
		}
	default:
		return nil, drover.Errorf(drover.Invalid, "byTag: wants services, got %T", list)
	}
	return out, nil
}
