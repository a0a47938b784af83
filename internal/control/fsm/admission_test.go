package fsm

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
)

// admission draws a command about admission rules.
func (d draw) admission() command.Command {
	if rapid.Bool().Draw(d.t, "delete") {
		return &command.DeleteAdmissionRules{Names: []string{d.id("rule", 3)}}
	}
	return &command.UpsertAdmissionRules{Rules: []*drover.AdmissionRule{{
		Name: d.id("rule", 3), Level: d.pick("level", "enforce", "warn"), Max: map[string]int64{"CPU": 1, "Cores": d.time()},
	}}}
}

// TestAdmissionRules are stored and forgotten all or none, up to a bound, and keep the index of their creation.
func TestAdmissionRules(t *testing.T) {
	t.Parallel()
	f := New(store.New(), nil)
	index := uint64(0)
	do := func(c command.Command) error {
		data, err := command.Encode(c)
		require.NoError(t, err)
		index++
		_, err = f.Apply(index, data)
		return err
	}
	names := func() (out []string) {
		for r := range f.store.Snapshot().AdmissionRules() {
			out = append(out, r.Name)
		}
		return out
	}
	require.NoError(t, do(&command.UpsertAdmissionRules{Rules: []*drover.AdmissionRule{{Name: "b"}, {Name: "a", Level: "warn"}}}))
	require.Equal(t, []string{"a", "b"}, names())
	require.NoError(t, do(&command.UpsertAdmissionRules{Rules: []*drover.AdmissionRule{{Name: "a", Level: "enforce"}}}))
	a := f.store.Snapshot().AdmissionRule("a")
	require.Equal(t, []any{"enforce", uint64(1), uint64(2)}, []any{a.Level, a.CreateIndex, a.ModifyIndex})

	require.Equal(t, drover.Invalid, drover.CodeOf(do(&command.UpsertAdmissionRules{Rules: []*drover.AdmissionRule{{Name: "c"}, nil}})))
	require.Equal(t, drover.NotFound, drover.CodeOf(do(&command.DeleteAdmissionRules{Names: []string{"a", "none"}})))
	require.Equal(t, []string{"a", "b"}, names(), "what is refused changes nothing")

	var many []*drover.AdmissionRule
	for i := range drover.MaxAdmissionRules - 1 {
		many = append(many, &drover.AdmissionRule{Name: fmt.Sprintf("m%03d", i)})
	}
	require.EqualError(t, do(&command.UpsertAdmissionRules{Rules: many}), "there would be 257 admission rules, the limit is 256")
	require.NoError(t, do(&command.UpsertAdmissionRules{Rules: many[1:]}))
	require.NoError(t, do(&command.UpsertAdmissionRules{Rules: many[1:2]}), "one that is there may change")
	require.NoError(t, do(&command.DeleteAdmissionRules{Names: []string{"b", "b", "a"}}))
	require.False(t, slices.Contains(names(), "a") || slices.Contains(names(), "b"))
}
