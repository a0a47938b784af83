package deepcopy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type part struct {
	Names  []string
	Config map[string]any
	At     time.Time
}

type whole struct {
	Count *int
	Parts []*part
	ByKey map[string]*part
	Any   any
	None  *part
	Array [2][]int
}

func sample() *whole {
	return &whole{
		Count: new(3), Parts: []*part{{Names: []string{"a"}, At: time.Unix(5, 0)}, nil},
		ByKey: map[string]*part{"k": {Config: map[string]any{"args": []any{"x", 1}}}, "nil": nil},
		Any:   map[string]any{"deep": []any{map[string]any{"n": 1}}}, Array: [2][]int{{1}, nil},
	}
}

func TestACopyIsEqual(t *testing.T) {
	t.Parallel()
	require.Equal(t, sample(), Of(sample()))
	require.Nil(t, Of[whole](nil))
	empty := &whole{Parts: []*part{}, ByKey: map[string]*part{}}
	got := Of(empty)
	require.NotNil(t, got.Parts, "an empty list is not a missing one")
	require.NotNil(t, got.ByKey)
	require.Nil(t, got.None)
}

// Whatever is changed through a copy, what it was made of stays.
func TestACopySharesNothing(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*whole){
		"pointer":              func(w *whole) { *w.Count = 4 },
		"list in a pointer":    func(w *whole) { w.Parts[0].Names[0] = "b" },
		"element of a list":    func(w *whole) { w.Parts[1] = &part{} },
		"key of a map":         func(w *whole) { w.ByKey["new"] = &part{} },
		"value of a map":       func(w *whole) { w.ByKey["k"].Names = []string{"c"} },
		"list in an interface": func(w *whole) { w.ByKey["k"].Config["args"].([]any)[0] = "y" },
		"map in an interface":  func(w *whole) { w.Any.(map[string]any)["deep"].([]any)[0].(map[string]any)["n"] = 2 },
		"list in an array":     func(w *whole) { w.Array[0][0] = 2 },
	} {
		original := sample()
		copied := Of(original)
		change(copied)
		require.Equal(t, sample(), original, name)
		require.NotEqual(t, original, copied, name)
	}
}
