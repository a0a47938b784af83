package native

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover/execution"
)

// A runner that writes itself is what encoding/json makes of it; a field that Runner gets is made up by rapid too, and is missed here.
func TestAClaimedRunnerIsWrittenAsAnyOther(t *testing.T) {
	t.Parallel()
	moment := rapid.Custom(func(t *rapid.T) time.Time {
		if rapid.Bool().Draw(t, "zero") {
			return time.Time{}
		}
		at := time.Unix(0, rapid.Int64Range(0, math.MaxInt64).Draw(t, "ns"))
		return at.In(time.FixedZone("", 60*rapid.IntRange(-720, 720).Draw(t, "minutes east")))
	})
	runners := rapid.MakeCustom[execution.Runner](rapid.MakeConfig{
		Types: map[reflect.Type]*rapid.Generator[any]{reflect.TypeFor[time.Time](): moment.AsAny()},
	})
	rapid.Check(t, func(t *rapid.T) {
		r := runners.Draw(t, "runner")
		got, err := written(r).AppendJSON(nil)
		require.NoError(t, err)
		want, err := json.Marshal(r)
		require.NoError(t, err)
		var escaped bytes.Buffer
		json.HTMLEscape(&escaped, got)
		require.Equal(t, string(want), escaped.String())
	})
}
