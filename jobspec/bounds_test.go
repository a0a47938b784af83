package jobspec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"drover"
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
		"fine":          {inMeta(strings.Repeat("(", 100) + "length(setproduct([1,2],[3,4]))" + strings.Repeat(")", 100)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j, err := Parse([]byte(test.text), Options{})
			if test.says == "" {
				require.NoError(t, err)
				require.Equal(t, "4", j.Meta["a"])
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
