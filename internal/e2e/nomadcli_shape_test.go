package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shape is what a recorded answer looked like: which keys it had, and of which types.
type shape struct {
	kind string           // "object", "array", "string", "number", "bool", "null"
	keys map[string]shape // of an object
	deep bool             // an object whose keys were not recorded
	elem *shape           // of the first element of an array, nil where it was empty
}

// parseShape reads the notation of the recording: {Key:string List:[{A:number}] Deeper:{…}}.
func parseShape(text string) (shape, error) {
	p := &shapeParser{rest: text}
	s, err := p.value()
	if err != nil || p.rest != "" {
		return shape{}, fmt.Errorf("no shape at %.40q: %w", p.rest, err)
	}
	return s, nil
}

type shapeParser struct{ rest string }

func (p *shapeParser) take(prefix string) bool {
	rest, ok := strings.CutPrefix(p.rest, prefix)
	p.rest = rest
	return ok
}

func (p *shapeParser) value() (shape, error) {
	for _, kind := range []string{"string", "number", "bool", "null"} {
		if p.take(kind) {
			return shape{kind: kind}, nil
		}
	}
	switch {
	case p.take("{…}"):
		return shape{kind: "object", deep: true}, nil
	case p.take("{"):
		return p.object()
	case p.take("[]"):
		return shape{kind: "array"}, nil
	case p.take("["):
		elem, err := p.value()
		if err == nil && !p.take("]") {
			err = fmt.Errorf("the list does not end")
		}
		return shape{kind: "array", elem: &elem}, err
	default:
		return shape{}, fmt.Errorf("unknown type")
	}
}

func (p *shapeParser) object() (shape, error) {
	s := shape{kind: "object", keys: map[string]shape{}}
	for !p.take("}") {
		p.take(" ")
		key, rest, ok := strings.Cut(p.rest, ":")
		if !ok {
			return s, fmt.Errorf("a key without a value")
		}
		p.rest = rest
		v, err := p.value()
		if err != nil {
			return s, err
		}
		s.keys[key] = v
	}
	return s, nil
}

// Of these objects the keys are data: what a node has, or what somebody named.
var dataKeys = []string{"Attributes", "Meta", "Static", "Dynamic", "Drivers", "Links", "HostVolumes", "stats"}

// differences tells, a line each, where got, decoded JSON, lacks what the recorded answer had. More keys are no
// difference, and neither is a value where the recording has null.
func (s shape) differences(path string, got any) []string {
	if s.kind == "null" {
		return nil
	}
	if kind := kindOf(got); kind != s.kind {
		return []string{fmt.Sprintf("%s is %s, Nomad's is %s", path, kind, s.kind)}
	}
	var out []string
	switch v := got.(type) {
	case []any:
		if s.elem == nil {
			return nil
		}
		if len(v) == 0 {
			return []string{path + " is empty"}
		}
		return s.elem.differences(path+"[]", v[0])
	case map[string]any:
		if s.deep || slices.Contains(dataKeys, path[strings.LastIndexByte(path, '.')+1:]) {
			return nil
		}
		for key, want := range s.keys {
			value, there := v[key]
			if !there && want.kind != "null" {
				out = append(out, fmt.Sprintf("%s.%s is missing, Nomad's is %s", path, key, want.kind))
			} else {
				out = append(out, want.differences(path+"."+key, value)...)
			}
		}
	}
	slices.Sort(out)
	return out
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case float64:
		return "number"
	case bool:
		return "bool"
	case []any:
		return "array"
	default:
		return "object"
	}
}

func TestShapesTellWhatIsMissing(t *testing.T) {
	t.Parallel()
	s, err := parseShape("[{ID:string Deep:{…} N:number None:null List:[string] Meta:{a.b:string}}]")
	require.NoError(t, err)
	require.Empty(t, s.differences("", []any{map[string]any{
		"ID": "x", "Deep": map[string]any{}, "N": 1.0, "List": []any{"y"},
		"Meta": map[string]any{}, "More": true,
	}}))
	require.Equal(t, []string{
		"[].Deep is null, Nomad's is object", "[].List is empty", "[].Meta is missing, Nomad's is object",
		"[].N is string, Nomad's is number",
	},
		s.differences("", []any{map[string]any{"ID": "x", "Deep": nil, "N": "1", "List": []any{}}}))
	for _, bad := range []string{"{ID:string", "[string", "{ID}", "strings", "text"} {
		_, err := parseShape(bad)
		require.Error(t, err, bad)
	}
}
