package jobspec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// A file that would end the process, or take all of its memory, is refused with its place.
func TestBounds(t *testing.T) {
	t.Parallel()
	inMeta := func(expr string) string {
		return "job \"x\" {\n  meta {\n    a = " + expr + "\n  }\n  group \"g\" {\n    task \"t\" {\n      driver = \"d\"\n    }\n  }\n}\n"
	}
	var doubled strings.Builder
	doubled.WriteString("locals {\n  a0 = \"xxxxxxxx\"\n")
	for i := range 40 {
		fmt.Fprintf(&doubled, "  a%d = \"${local.a%d}${local.a%d}\"\n", i+1, i, i)
	}
	doubled.WriteString("}\n")
	const n = 30_000
	for name, test := range map[string]struct{ text, says string }{
		"brackets":      {inMeta(strings.Repeat("(", n) + "1" + strings.Repeat(")", n)), "levels of nesting"},
		"not closed":    {inMeta(strings.Repeat("[", n)), "levels of nesting"},
		"blocks":        {strings.Repeat("a {\n", n/2) + strings.Repeat("}\n", n/2), "levels of nesting"},
		"templates":     {inMeta(strings.Repeat(`"${`, n)), "levels of nesting"},
		"directives":    {inMeta(`"` + strings.Repeat("%{if true}", n/4) + `"`), "operators"},
		"signs":         {inMeta(strings.Repeat("-", n) + "1"), "operators"},
		"a sum":         {inMeta("1" + strings.Repeat("+1", n)), "operators"},
		"conditions":    {inMeta(strings.Repeat("true ? 1 : ", n/2) + "2"), "operators"},
		"long":          {strings.Repeat("# a longer comment, of which there are many lines\n", n), "bytes"},
		"a product":     {inMeta("length(setproduct(range(1000), range(1000), range(1000)))"), "setproduct: more than"},
		"doubled texts": {doubled.String() + inMeta("local.a40"), "larger than"},
		"a wide format": {inMeta(`format("%-300000000s", "x")`), "the result would be too large"},
		"a precision":   {inMeta(`format("%.300000000f", 1)`), "the result would be too large"},
		"a given width": {inMeta(`format("%*s", 300000000, "x")`), "the result would be too large"},
		"formats":       {inMeta(`formatlist("%100000s", range(1000))[0]`), "the result would be too large"},
		"an indent":     {inMeta(`indent(1000000000, "a\nb")`), "the result would be too large"},
		"replacements": {
			inMeta(`replace(replace(replace("aaaa", "a", join("", [for x in range(1000): "a"])),
				"a", join("", [for x in range(1000): "a"])), "a", join("", [for x in range(1000): "a"]))`),
			"the result is larger than",
		},
		"patterns": {
			inMeta(`length(regex_replace(join("", [for x in range(1000): "a"]), "", format("%100000s", "")))`),
			"the result would be too large",
		},
		"separators":   {inMeta(`length(join(format("%1000000s", ""), [for x in range(1000): "a"]))`), "the result would be too large"},
		"a cost":       {inMeta(`bcrypt("x", 31)`), "the cost is at most 12"},
		"fine formats": {inMeta(`length(format("%-300s%5.2f%%", "x", 2))`), "306"},
		"fine":         {inMeta(strings.Repeat("(", 100) + "length(setproduct([1,2],[3,4]))" + strings.Repeat(")", 100)), "4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j, err := Parse([]byte(test.text), Options{})
			if strings.HasPrefix(name, "fine") {
				require.NoError(t, err)
				require.Equal(t, test.says, j.Meta["a"])
				return
			}
			require.Equal(t, drover.Invalid, drover.CodeOf(err))
			require.ErrorContains(t, err, test.says)
			_, err = Parse([]byte(inMeta("1")), Options{VarFile: test.text})
			require.Error(t, err)
			require.LessOrEqual(t, len(Declared([]byte(test.text))), 1)
		})
	}
}
