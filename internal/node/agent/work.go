package agent

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
)

// Work returns how many allocations have not ended.
func (a *Agent) Work() int {
	n := 0
	for _, r := range a.runners() {
		if !r.View().Ended() {
			n++
		}
	}
	return n
}

// Allocations yields all that this node knows, with what it last said of them.
func (a *Agent) Allocations(yield func(*drover.Allocation, exchange.AllocUpdate) bool) {
	for _, r := range a.runners() {
		if v := r.View(); !yield(v.Alloc, v.Update) {
			return
		}
	}
}
