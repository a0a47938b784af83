package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-bexpr"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Texts of fields, and expressions of each kind of field.
var (
	words       = []string{"", "docker", "raw_exec", "/etc", "/srv/data", "a.b", "net_admin", "10", "prod", "x/y"}
	comparisons = []string{
		`%s == "%s"`, `%s != "%s"`, `"%[2]s" in %[1]s`, `%s contains "%s"`, `%s not contains "%s"`, `%s matches "^%s"`,
		`%s not matches "%s$"`, "%s is empty", "%s is not empty",
	}
)

// drawnText draws an expression that compiles; a name is what "any" and "all" gave to their elements.
func drawnText(t *rapid.T, depth int, name string) string {
	word := func() string { return rapid.SampledFrom(words).Draw(t, "word") }
	if depth > 0 {
		switch rapid.IntRange(0, 4).Draw(t, "shape") {
		case 0:
			return "(" + drawnText(t, depth-1, name) + " and " + drawnText(t, depth-1, name) + ")"
		case 1:
			return "(" + drawnText(t, depth-1, name) + " or " + drawnText(t, depth-1, name) + ")"
		case 2:
			return "not (" + drawnText(t, depth-1, name) + ")"
		case 3:
			if name == "" {
				of := rapid.SampledFrom([]string{"HostPaths as x", "CapAdd as x", "Meta as x", "Meta as _, x", "Meta as x, _"}).Draw(t, "of")
				return fmt.Sprintf("(%s %s { %s })", rapid.SampledFrom([]string{"any", "all"}).Draw(t, "op"), of, drawnText(t, depth-1, "x"))
			}
		}
	}
	ofText := func(field string) string {
		form := rapid.SampledFrom(comparisons).Draw(t, "form")
		if strings.Count(form, "%") == 1 {
			return fmt.Sprintf(form, field)
		}
		return fmt.Sprintf(form, field, word())
	}
	if name != "" && rapid.Bool().Draw(t, "named") {
		return ofText(name)
	}
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		return ofText(rapid.SampledFrom([]string{"Driver", "Image", "User", `Meta["a.b"]`, "Meta.prod"}).Draw(t, "text"))
	case 1:
		return fmt.Sprintf("%s %s %v", rapid.SampledFrom([]string{"Privileged", "Periodic"}).Draw(t, "flag"),
			rapid.SampledFrom([]string{"==", "!="}).Draw(t, "op"), rapid.Bool().Draw(t, "want"))
	case 2:
		return fmt.Sprintf("MemoryMB %s %d", rapid.SampledFrom([]string{"==", "!="}).Draw(t, "op"), rapid.IntRange(8, 12).Draw(t, "n"))
	case 3:
		return fmt.Sprintf(`"%s" %s %s`, word(), rapid.SampledFrom([]string{"in", "not in"}).Draw(t, "op"),
			rapid.SampledFrom([]string{"HostPaths", "CapAdd", "Meta"}).Draw(t, "list"))
	}
	return rapid.SampledFrom([]string{"HostPaths is empty", "CapAdd is not empty", "Meta is empty"}).Draw(t, "empty")
}

func drawnView(t *rapid.T) *View {
	word := rapid.SampledFrom(words)
	return &View{
		Driver: word.Draw(t, "driver"), Image: word.Draw(t, "image"), User: word.Draw(t, "user"),
		Privileged: rapid.Bool().Draw(t, "privileged"), Periodic: rapid.Bool().Draw(t, "periodic"),
		MemoryMB: rapid.IntRange(8, 12).Draw(t, "memory"), HostPaths: rapid.SliceOfN(word, 0, 3).Draw(t, "paths"),
		CapAdd: rapid.SliceOfN(word, 0, 3).Draw(t, "caps"), Meta: rapid.MapOfN(word, word, 0, 3).Draw(t, "meta"),
		unknown: map[string]string{},
	}
}

// byLibrary is what go-bexpr itself says of an expression. Raw quotes keep it from taking "/etc" for a path of fields.
func byLibrary(t require.TestingT, text string, v *View) bool {
	e, err := bexpr.CreateEvaluator(rawQuotes(text))
	require.NoError(t, err, text)
	ok, err := e.Evaluate(v)
	require.NoError(t, err, text)
	return ok
}

// TestExpressionsAreTheLibrarys: an expression means what go-bexpr says that it does.
func TestExpressionsAreTheLibrarys(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text, v := drawnText(t, 3, ""), drawnView(t)
		holds, _, err := compile(text)
		require.NoError(t, err, text)
		require.Equal(t, truthOf(byLibrary(t, text, v)), holds(v, element{}), text)
	})
}

// TestUnknownFieldsMayBeAnything: of a task some of whose fields are not known, an expression is denied, or holds, only if it would be so
// whatever they are.
func TestUnknownFieldsMayBeAnything(t *testing.T) {
	t.Parallel()
	sure := 0
	rapid.Check(t, func(t *rapid.T) {
		text, v := drawnText(t, 3, ""), drawnView(t)
		holds, uses, err := compile(text)
		require.NoError(t, err, text)
		fields := []string{"Driver", "Image", "HostPaths", "Privileged", "Meta", "CapAdd"}
		for _, field := range fields {
			if rapid.Bool().Draw(t, field) {
				v.unknown[field] = "${" + field + "}"
			}
		}
		said := holds(v, element{})
		for field := range v.unknown {
			if !uses[field] {
				delete(v.unknown, field)
			}
		}
		if len(v.unknown) == 0 {
			require.NotEqual(t, maybe, said, text)
		}
		if said != maybe {
			sure++
		}
		other := drawnView(t)
		for field := range v.unknown {
			switch field {
			case "Driver":
				v.Driver = other.Driver
			case "Image":
				v.Image = other.Image
			case "HostPaths":
				v.HostPaths = other.HostPaths
			case "Privileged":
				v.Privileged = other.Privileged
			case "Meta":
				v.Meta = other.Meta
			case "CapAdd":
				v.CapAdd = other.CapAdd
			}
		}
		if said != maybe {
			require.Equal(t, said, truthOf(byLibrary(t, text, v)), "%s with %q", text, slices.Sorted(maps.Keys(v.unknown)))
		}
	})
	require.Positive(t, sure)
}

// TestFaultsHavePlaces: what does not compile is refused with its line and column.
func TestFaultsHavePlaces(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`Driver = "x"`:                                                      "1:8 (7): no match found",
		`Driver == "Drivr" and Drivr == "x"`:                                `1:23: "Drivr" is no field of a task`,
		"Driver == \"x\"\n  and Privilegd == true":                          `2:7: "Privilegd" is no field of a task`,
		`Driver == "x" or unknown == 1`:                                     `1:18: "unknown" is no field of a task`,
		`Driver.Name == "x"`:                                                `1:1: Driver has no "Name" in it`,
		`Meta.a.b == "x"`:                                                   `1:1: write Meta["a.b"]`,
		`Privileged == maybe`:                                               `1:1: Privileged is true or false, not "maybe"`,
		`Privileged is empty`:                                               `1:1: Privileged is true or false: it can be compared by ==`,
		`MemoryMB == "much"`:                                                `1:1: MemoryMB is a whole number, not "much"`,
		`MemoryMB matches "1"`:                                              `1:1: MemoryMB is a number: it can be compared by == and != alone`,
		`HostPaths == "/etc"`:                                               `1:1: HostPaths holds several: ask for one by in`,
		`User == "x" and Driver matches "("`:                                `1:17: the pattern for Driver: error parsing regexp`,
		`Driver matches "(a{1000}){1000}"`:                                  `1:1: the pattern for Driver:`,
		`Driver is nil`:                                                     `1:1: Driver is a text and never nil: write is empty`,
		`any Driver as x { x == "y" }`:                                      `1:5: Driver is no list`,
		`any HostPaths as i, x { x == "y" }`:                                `1:18: the places of a list have no names`,
		`any HostPaths as Driver { Driver == "y" }`:                         `1:18: "Driver" is the name of a field`,
		`any HostPaths as x { x.y == "y" }`:                                 `1:22: "x" is a text and has no parts`,
		`any CapAdd as c { any HostPaths as x { x == c} }`:                  `1:23: any and all cannot be within each other`,
		`(any HostPaths as x { x == "y" }) and x == "y"`:                    `1:39: "x" is no field of a task`,
		strings.Repeat(`Driver == "x" and `, 64) + `User == "x"`:            "there are more than 64 comparisons",
		strings.Repeat(" ", 5000):                                           "it has 5000 bytes, the limit is 4096",
		strings.Repeat("(", 20) + `Driver == "x"` + strings.Repeat(")", 20): "too many parentheses in each other",
	} {
		_, _, err := compile(text)
		require.ErrorContains(t, err, want, text)
	}
}

// TestQuotedPathsAreTexts: go-bexpr takes "/etc" for a path of fields, and would compare with "etc".
func TestQuotedPathsAreTexts(t *testing.T) {
	t.Parallel()
	v := &View{HostPaths: []string{"/etc"}, Image: "/x/y", User: "a\tb"}
	for _, text := range []string{
		`"/etc" in HostPaths`, `HostPaths contains "/etc"`, `any HostPaths as p { p == "/etc" }`, `Image == "/x/y"`, `Image matches "^/x/y$"`,
		`User == "a\tb"`, "`/etc` in HostPaths", `HostPaths not contains "etc"`,
	} {
		holds, _, err := compile(text)
		require.NoError(t, err, text)
		require.Equal(t, yes, holds(v, element{}), text)
	}
}
