package binding

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/drover-project/drover/acl"
)

// Claims are those of who logged in, under the names that the method gives them. The tags are their names in selectors.
type Claims struct {
	Value map[string]string   `bexpr:"value"`
	List  map[string][]string `bexpr:"list"`
}

// Map takes the claims that the method maps. A claim that is not there, or is of another kind, has no name.
func Map(c *acl.AuthMethodConfig, claims map[string]any) Claims {
	out := Claims{Value: map[string]string{}, List: map[string][]string{}}
	for claim, name := range c.ClaimMappings {
		if s, ok := text(find(claims, claim)); ok {
			out.Value[name] = s
		}
	}
	for claim, name := range c.ListClaimMappings {
		if list, ok := texts(find(claims, claim)); ok {
			out.List[name] = list
		}
	}
	return out
}

// value is a variable "value.NAME".
func (c Claims) value(name string) (string, bool) {
	s, ok := c.Value[strings.TrimPrefix(name, "value.")]
	return s, ok && strings.HasPrefix(name, "value.")
}

// find returns the claim, which may be the path of one within others as a JSON pointer (RFC 6901): "/a/b".
func find(claims map[string]any, claim string) any {
	if v, ok := claims[claim]; ok || !strings.HasPrefix(claim, "/") {
		return v
	}
	var at any = claims
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for part := range strings.SplitSeq(claim[1:], "/") {
		switch v := at.(type) {
		case map[string]any:
			at = v[unescape.Replace(part)]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			at = v[i]
		default:
			return nil
		}
	}
	return at
}

// text is a claim of one value.
func text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case json.Number:
		return v.String(), true
	default:
		return "", false
	}
}

// texts is a claim of several values; one alone is a list of it.
func texts(v any) ([]string, bool) {
	if s, ok := text(v); ok {
		return []string{s}, true
	}
	all, ok := v.([]any)
	if !ok {
		return nil, false
	}
	out := make([]string, 0, len(all))
	for _, one := range all {
		s, ok := text(one)
		if !ok {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}
