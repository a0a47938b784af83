package federation

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover/acl"
)

// TestDifferencesAreAsGoodAsAll: whoever is told differences knows after each answer what an answer in full says, whatever happened since,
// to other tables, too, and however many followers ask, of which some know no differences.
func TestDifferencesAreAsGoodAsAll(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		state, index, changed, epoch := map[string]uint64{}, uint64(1), uint64(1), "e1" // tokens, by the index of their last change
		read := func(after uint64) Objects {
			o := Objects{Index: index, Epoch: epoch, Access: &Access{}}
			if after > 0 && changed <= after {
				o.Access.Tokens.Same = true
				return o
			}
			for _, key := range slices.Sorted(maps.Keys(state)) {
				o.Access.Tokens.Keys = append(o.Access.Tokens.Keys, key)
				if state[key] > after {
					o.Access.Tokens.Have = append(o.Access.Tokens.Have, &acl.Token{AccessorID: key, ModifyIndex: state[key]})
				}
			}
			return o
		}
		var told Told
		followers := make([]Objects, 3)
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			key := fmt.Sprintf("t%02d", rapid.IntRange(0, 15).Draw(rt, "token"))
			switch rapid.IntRange(0, 9).Draw(rt, "what") {
			case 0, 1, 2, 3:
				index++
				state[key], changed = index, index
			case 4, 5:
				if _, there := state[key]; there {
					index++
					changed = index
					delete(state, key)
				}
			case 6:
				index++ // a policy
			case 7:
				if rapid.IntRange(0, 5).Draw(rt, "restore") == 0 {
					epoch += "'"
				}
			default:
				i := rapid.IntRange(0, 2).Draw(rt, "follower")
				f := &followers[i]
				ask := Ask{After: f.Index, Epoch: f.Epoch, Differences: i > 0}
				answer := read(ask.After)
				if ask.Epoch != epoch {
					answer = read(0)
				}
				told.Shrink(ask, &answer)
				require.False(rt, answer.Access.Tokens.Differs && i == 0)
				if answer.Epoch == f.Epoch {
					answer = f.with(answer)
				}
				*f = answer
				want := read(0)
				require.Equal(rt, len(want.Access.Tokens.Keys), len(f.Access.Tokens.Keys))
				require.ElementsMatch(rt, want.Access.Tokens.Keys, f.Access.Tokens.Keys)
				require.ElementsMatch(rt, want.Access.Tokens.Have, f.Access.Tokens.Have)
			}
		}
	})
}

// TestOneTokenOfThousands is told alone.
func TestOneTokenOfThousands(t *testing.T) {
	t.Parallel()
	var told Told
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprintf("%036d", i)
	}
	first := Objects{Index: 5, Epoch: "e", Access: &Access{Tokens: Set[*acl.Token]{Keys: keys}}}
	told.Shrink(Ask{Differences: true}, &first)
	require.Len(t, first.Access.Tokens.Keys, 10_000)
	next := Objects{Index: 6, Epoch: "e", Access: &Access{Tokens: Set[*acl.Token]{Keys: keys[1:]}}}
	told.Shrink(Ask{After: 5, Epoch: "e", Differences: true}, &next)
	require.Equal(t, Set[*acl.Token]{Gone: keys[:1], Differs: true}, next.Access.Tokens)
	missing := Objects{Index: 7, Access: &Access{Tokens: Set[*acl.Token]{Keys: keys}}}
	told.Shrink(Ask{After: 6, Epoch: "e", Differences: true}, &missing)
	require.Len(t, missing.Access.Tokens.Keys, 10_000, "what is asked for anew is told in full")
}
