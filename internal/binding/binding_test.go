package binding

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/acl"
)

// claims are those of a CI system's token.
func claims(t *testing.T) Claims {
	var all map[string]any
	require.NoError(t, json.Unmarshal([]byte(`{
		"sub": "repo:shop/web", "ref": "main", "protected": true, "run": 12345678901, "groups": ["dev", "ops"], "one": "alone",
		"deep": {"er": [{"a/b": "found"}], "list": ["x", 1]}, "mixed": ["x", {}], "object": {}
	}`), &all))
	return Map(&acl.AuthMethodConfig{
		ClaimMappings: map[string]string{
			"sub": "sub", "ref": "ref", "protected": "protected", "run": "run", "/deep/er/0/a~1b": "deep", "groups": "no_value", "none": "none",
			"/deep/er/7": "far", "object": "object",
		},
		ListClaimMappings: map[string]string{"groups": "groups", "one": "one", "/deep/list": "deep", "mixed": "mixed", "none": "none"},
	}, all)
}

func TestMap(t *testing.T) {
	t.Parallel()
	require.Equal(t, Claims{
		Value: map[string]string{"sub": "repo:shop/web", "ref": "main", "protected": "true", "run": "12345678901", "deep": "found"},
		List:  map[string][]string{"groups": {"dev", "ops"}, "one": {"alone"}, "deep": {"x", "1"}},
	}, claims(t))
}

// TestHolds: a claim that is not there equals nothing, as in Nomad.
func TestHolds(t *testing.T) {
	t.Parallel()
	c := claims(t)
	for selector, want := range map[string]bool{
		"":                                true,
		"value.ref == main":               true,
		`value.ref == "main"`:             true,
		`value["ref"] == "main"`:          true,
		"value.ref != main":               false,
		"dev in list.groups":              true,
		"boss in list.groups":             false,
		"boss not in list.groups":         true,
		"list.groups contains ops":        true,
		`value.sub matches "^repo:shop/"`: true,
		"value.ref == main and dev in list.groups and value.protected == true": true,
		"value.none == x":                      false,
		"value.none != x":                      true,
		"not value.none == x":                  true,
		"x not in list.none":                   true,
		"list.none is empty":                   true,
		"value.ref == main or value.none == x": true,
	} {
		require.Equal(t, want, Holds(&acl.BindingRule{Selector: selector}, c), selector)
	}
	require.False(t, Holds(&acl.BindingRule{Selector: "value."}, c), "what cannot be read")
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, selector := range []string{
		"", "nomad_engineering_team in list.groups", "value.a == b or not c in list.d", "any list.groups as g { g == x }",
	} {
		require.NoError(t, Check(&acl.BindingRule{Selector: selector}), selector)
	}
	for selector, want := range map[string]string{
		"value.a ==":         "Selector: ",
		"ref == main":        `"ref" is neither value.NAME of ClaimMappings nor list.NAME`,
		"value.a == b and x": "Selector: ",
		`value.a matches "` + strings.Repeat("(a{1,100}){1,100}", 3) + `"`: "Selector: ",
	} {
		require.ErrorContains(t, Check(&acl.BindingRule{Selector: selector}), want, selector)
	}
	for name, want := range map[string]string{
		"${value.a": "BindName: ", "${a}": `names "a", which there is not`, "${value.}": "BindName: ",
		"${list.groups}": "it may have ${value.NAME}",
	} {
		require.ErrorContains(t, Check(&acl.BindingRule{BindName: name}), want, name)
	}
	require.NoError(t, CheckTokenName(&acl.AuthMethod{TokenNameFormat: "${auth_method_type}/${ auth_method_name }-${value.sub} $${x}"}))
	require.ErrorContains(t, CheckTokenName(&acl.AuthMethod{TokenNameFormat: "${method}"}), "TokenNameFormat: ")
}

func TestBindAndNames(t *testing.T) {
	t.Parallel()
	c := claims(t)
	rules := []*acl.BindingRule{
		{BindType: acl.BindPolicy, BindName: "deploy-${value.ref}"},
		{BindType: acl.BindPolicy, BindName: "deploy-main"},
		{BindType: acl.BindRole, BindName: "team", Selector: "dev in list.groups"},
		{BindType: acl.BindRole, BindName: "boss", Selector: "boss in list.groups"},
		{BindType: acl.BindRole, BindName: "${value.none}"},
	}
	require.Equal(t, Given{Policies: []string{"deploy-main"}, Roles: []string{"team"}}, Bind(rules, c))
	require.Equal(t, Given{Management: true}, Bind([]*acl.BindingRule{{BindType: acl.BindManagement}}, c))
	require.Zero(t, Bind(rules, Claims{}).Roles)

	m := &acl.AuthMethod{Name: "ci", Type: acl.MethodJWT, TokenNameFormat: "${auth_method_name} for ${value.sub} $${x}"}
	require.Equal(t, "ci for repo:shop/web ${x}", TokenName(m, c))
	require.Equal(t, "JWT-ci", TokenName(m, Claims{}), "a claim that is not there")
	c.Value["sub"] = strings.Repeat("x", 300)
	require.Equal(t, "JWT-ci", TokenName(m, c), "too long")
}

// FuzzCheck: whatever was written as a selector, it can be judged, and what is taken can be asked.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{"value.a == b", "x in list.y", "not (value.a is empty)", "any list.a as x { x == y }", `value.a matches "("`} {
		f.Add(s, "${value.a}")
	}
	c := Claims{Value: map[string]string{"a": "b"}, List: map[string][]string{"y": {"x"}}}
	f.Fuzz(func(t *testing.T, selector, name string) {
		if len(selector) > acl.MaxSelector {
			return
		}
		b := &acl.BindingRule{Selector: selector, BindName: name, BindType: acl.BindPolicy}
		if Check(b) == nil {
			Bind([]*acl.BindingRule{b}, c)
		}
	})
}
