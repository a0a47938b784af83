package attention

import (
	"context"
	"sync"
	"time"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/insight"
)

// Topology is where the nodes are and how full. However many ask, it is made for a small part of the time.
type Topology struct {
	state func() insight.NodesState
	clock clock.Clock

	mu   sync.Mutex
	last *cluster.Topology // guarded by mu: the newest; nil: none yet
	at   time.Time         // guarded by mu: when it was made
	took time.Duration     // guarded by mu: to make it
}

// NewTopology returns that of the state.
func NewTopology(state func() insight.NodesState, c clock.Clock) *Topology {
	return &Topology{state: state, clock: c}
}

// Newest is that of the newest state, or one of the last moments on a large cluster that changes all the time.
func (t *Topology) Newest(context.Context) (*cluster.Topology, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	state, now := t.state(), t.clock.Now()
	if t.last == nil || t.last.Index != insight.TopologyIndex(state) && now.Sub(t.at) >= rests*t.took {
		t.last = insight.TopologyOf(state)
		t.at = t.clock.Now()
		t.took = t.at.Sub(now)
	}
	return t.last, nil
}
