package chaos

import (
	"math"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// registerModel is a register that is read, and written if its value is the expected one.
var registerModel = porcupine.Model{
	Init: func() any { return "" }, // any: the first step that is certain says what it was
	Step: func(state, input, _ any) (bool, any) {
		now, s := state.(string), input.(step)
		switch s.outcome {
		case observed:
			return now == s.value || now == "", s.value
		case applied, unknown: // of the unknown ones only those that were seen are left
			return now == s.expect || now == "", s.value
		case refuted:
			return now != s.expect, now
		}
		return false, now
	},
	DescribeOperation: func(input, _ any) string {
		s := input.(step)
		return string(s.outcome) + " " + s.expect + " → " + s.value
	},
}

// operations are the steps that had an effect, or saw one. A write whose outcome nobody knows was applied if its value was
// read, or was expected by a write that was applied. For values are written once, only who knows a value overwrites it, and the
// last one was read at the end.
func operations(steps []step) (out []porcupine.Operation) {
	seen := map[string]bool{}
	for _, s := range steps {
		switch s.outcome {
		case observed:
			seen[s.value] = true
		case applied:
			seen[s.expect] = true
		default:
		}
	}
	for _, s := range steps {
		end := int64(s.end)
		if s.outcome == unknown {
			if !seen[s.value] {
				continue
			}
			end = math.MaxInt64
		}
		out = append(out, porcupine.Operation{ClientId: s.client, Input: s, Call: int64(s.call), Return: end})
	}
	return out
}

// linearizable reports whether there is an order of all steps, each within its time, that explains what the clients saw.
func linearizable(steps []step, limit time.Duration) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(registerModel, operations(steps), limit)
}

func TestWhatIsLinearizable(t *testing.T) {
	t.Parallel()
	read := func(value string, at, end time.Duration) step {
		return step{outcome: observed, value: value, call: at, end: end}
	}
	set := func(o outcome, expect, value string, at, end time.Duration) step {
		return step{outcome: o, expect: expect, value: value, call: at, end: end}
	}
	for name, c := range map[string]struct {
		steps []step
		want  porcupine.CheckResult
	}{
		"in turn":         {[]step{read("a", 0, 1), set(applied, "a", "b", 2, 3), read("b", 4, 5)}, porcupine.Ok},
		"at once":         {[]step{read("a", 0, 1), set(applied, "a", "b", 2, 9), read("b", 4, 5), read("a", 3, 4)}, porcupine.Ok},
		"an older value":  {[]step{read("a", 0, 1), set(applied, "a", "b", 2, 3), read("a", 4, 5)}, porcupine.Illegal},
		"back and forth":  {[]step{read("a", 0, 1), set(applied, "a", "b", 2, 9), read("b", 4, 5), read("a", 6, 7)}, porcupine.Illegal},
		"both won":        {[]step{set(applied, "a", "b", 0, 9), set(applied, "a", "c", 0, 9)}, porcupine.Illegal},
		"a false refusal": {[]step{read("a", 0, 1), set(refuted, "a", "b", 2, 3), read("a", 4, 5)}, porcupine.Illegal},
		"refused, but written": {
			[]step{read("a", 0, 1), set(refuted, "a", "b", 2, 3), read("b", 4, 5)}, porcupine.Illegal,
		},
		"unknown and written later": {
			[]step{read("a", 0, 1), set(unknown, "a", "b", 2, 3), read("a", 4, 5), read("b", 6, 7)}, porcupine.Ok,
		},
		"unknown and not written": {[]step{read("a", 0, 1), set(unknown, "a", "b", 2, 3), read("a", 4, 5)}, porcupine.Ok},
		"unknown, and lost after it was seen": {
			[]step{read("a", 0, 1), set(unknown, "a", "b", 2, 3), read("b", 4, 5), read("a", 6, 7)}, porcupine.Illegal,
		},
	} {
		require.Equal(t, c.want, linearizable(c.steps, time.Minute), name)
	}
}
