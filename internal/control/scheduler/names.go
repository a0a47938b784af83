package scheduler

import (
	"strconv"
	"strings"

	"github.com/drover-project/drover"
)

// allocName is job.group[index].
func allocName(job *drover.Job, g *drover.TaskGroup, index int) string {
	name := make([]byte, 0, len(job.ID)+len(g.Name)+10)
	name = append(append(append(append(name, job.ID...), '.'), g.Name...), '[')
	return string(append(strconv.AppendInt(name, int64(index), 10), ']'))
}

// allocIndex reads the index out of an allocation's name, -1 if there is none.
func allocIndex(name string) int {
	open := strings.LastIndexByte(name, '[')
	if open < 0 || !strings.HasSuffix(name, "]") {
		return -1
	}
	i, err := strconv.Atoi(name[open+1 : len(name)-1])
	if err != nil {
		return -1
	}
	return i
}

// names hands out the lowest free indexes of a group.
type names struct {
	used map[int]bool
	next int
}

func newNames(sets ...[]*drover.Allocation) *names {
	n := &names{used: map[int]bool{}}
	for _, set := range sets {
		for _, a := range set {
			n.used[allocIndex(a.Name)] = true
		}
	}
	return n
}

// take returns the wanted index if it is free and below count, else the lowest free one.
func (n *names) take(wanted, count int) int {
	if wanted >= 0 && wanted < count && !n.used[wanted] {
		n.used[wanted] = true
		return wanted
	}
	for n.used[n.next] {
		n.next++
	}
	n.used[n.next] = true
	return n.next
}
