package view

import (
	"slices"
	"strconv"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/term"
)

// CompareNames orders names of allocations, negative if x comes first. Shorter ones come first, so web[2] is before
// web[10].
func CompareNames(x, y string) int {
	if len(x) != len(y) {
		return len(x) - len(y) // web[2] before web[10]
	}
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// SortNewestFirst orders allocations by when they were made, and those of one plan by name.
func SortNewestFirst(list []*drover.AllocationListStub) {
	slices.SortStableFunc(list, func(x, y *drover.AllocationListStub) int {
		if x.CreateIndex != y.CreateIndex {
			return int(y.CreateIndex) - int(x.CreateIndex)
		}
		return CompareNames(x.Name, y.Name)
	})
}

// Allocations prints a row for each allocation, in the order of the list. Errors: those of writing.
func Allocations(app *term.App, o *term.Output, list []*drover.AllocationListStub) error {
	var rows [][]string
	for _, v := range list {
		rows = append(rows, []string{
			o.ID(v.ID), v.Name, v.NodeName, strconv.FormatUint(v.JobVersion,
				10), v.DesiredStatus, v.ClientStatus, term.Ago(v.CreateTime), term.Ago(v.ModifyTime),
		})
	}
	return term.Table(app.Out, "There are none.", "ID|Name|Node|Version|Desired|Status|Created|Modified", rows)
}
