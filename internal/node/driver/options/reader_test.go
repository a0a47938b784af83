package options_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver/options"
)

func TestValuesAsHCLAndJSONMakeThem(t *testing.T) {
	t.Parallel()
	r := options.New(map[string]any{
		"s": "x", "number": float64(1e6), "f": "true", "n": "7", "n64": int64(8), "l": []any{"a", 1, true}, "nil": nil,
		"d": []any{map[string]any{"a": 1}, map[string]any{"b": false}}, "b": map[string]any{"in": "y"},
	})
	require.Equal(t, "x", r.Str("s"))
	require.Equal(t, "1000000", r.Str("number"))
	require.True(t, r.Flag("f"))
	require.Equal(t, []int64{7, 8, 0}, []int64{r.Num("n", 0, 9), r.Num("n64", 0, 9), r.Num("none", 3, 9)})
	require.Equal(t, []string{"a", "1", "true"}, r.Strs("l"))
	require.Equal(t, map[string]string{"a": "1", "b": "false"}, r.Dict("d"))
	require.False(t, r.Has("nil"))
	in := ""
	r.Block("b", func(b *options.Reader) { in = b.Str("in") })
	require.Equal(t, "y", in)
	require.NoError(t, r.Done())
}

func TestAllProblems(t *testing.T) {
	t.Parallel()
	r := options.New(map[string]any{
		"s": []any{}, "f": 1, "n": 1.5, "many": 10, "word": "x", "l": "x", "mixed": []any{map[string]any{}}, "d": map[string]any{"k": []any{}},
		"b": []any{map[string]any{"odd": 1}, map[string]any{}}, "e": []any{map[string]any{"odd": 1}}, "other": 1, "maany": 1,
	})
	r.Str("s")
	r.Flag("f")
	r.Num("n", 0, 1)
	r.Num("many", 0, 9)
	r.Num("word", 0, 9)
	r.Strs("l")
	r.Strs("mixed")
	r.Dict("d")
	r.Block("b", func(*options.Reader) {})
	r.Each("e", func(*options.Reader) {})
	err := r.Done()
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	for _, want := range []string{
		"s: must be a string", "f: must be true or false", "n: must be a whole", "many: 10 is not between", `word: must be a number, not "x"`,
		"l: must be a list", "mixed: all elements", `d: the value of "k"`, "b: must be one block", `e: unknown key "odd"`,
		`unknown key "other"; known are b, d, e, `,
		`unknown key "maany"; did you mean "many"?`,
	} {
		require.ErrorContains(t, err, want)
	}
}
