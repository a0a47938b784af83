package view

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/term"
)

func TestNamesOfAllocationsAreOrderedByTheirNumbers(t *testing.T) {
	t.Parallel()
	names := []string{"web.g[10]", "web.g[2]", "web.g[1]", "web.a[2]"}
	slices.SortFunc(names, CompareNames)
	require.Equal(t, []string{"web.a[2]", "web.g[1]", "web.g[2]", "web.g[10]"}, names)
	name := rapid.StringMatching(`[a-c]{1,3}\[[0-9]{1,2}\]`)
	rapid.Check(t, func(t *rapid.T) {
		x, y := name.Draw(t, "x"), name.Draw(t, "y")
		require.Equal(t, CompareNames(x, y) > 0, CompareNames(y, x) < 0)
		require.Equal(t, x == y, CompareNames(x, y) == 0)
	})
}

func TestTheNewestComeFirst(t *testing.T) {
	t.Parallel()
	list := []*drover.AllocationListStub{
		{ID: "old", CreateIndex: 1, Name: "a[0]"}, {ID: "second", CreateIndex: 2, Name: "a[10]"}, {ID: "first", CreateIndex: 2, Name: "a[9]"},
	}
	SortNewestFirst(list)
	require.Equal(t, []string{"first", "second", "old"}, []string{list[0].ID, list[1].ID, list[2].ID})
}

func TestAnEmptyListSaysSo(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, Allocations(&term.App{Out: &b}, &term.Output{}, nil))
	require.Equal(t, "There are none.\n", b.String())
}

func TestADeploymentWithoutCanariesHasNothingToPromote(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	d := &drover.Deployment{ID: "d1", JobID: "web", TaskGroups: map[string]*drover.DeploymentState{
		"b": {DesiredTotal: 1}, "a": {DesiredTotal: 3, DesiredCanaries: 1, Promoted: true}, "c": {DesiredCanaries: 1},
	}}
	require.NoError(t, Deployment(&term.App{Out: &b}, &term.Output{}, d))
	require.Regexp(t, `(?s)\na +yes +3 +1 .*\nb +- +1 +0 .*\nc +no +0 +1 `, b.String())
}
