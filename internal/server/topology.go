package server

import (
	"context"
	"sync"
	"time"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/insight"
)

// topology is where the nodes are and how full. However many ask, it is made for a small part of the time.
type topology struct {
	state func() insight.NodesState
	clock clock.Clock

	mu   sync.Mutex
	last *cluster.Topology // guarded by mu: the newest; nil: none yet
	at   time.Time         // guarded by mu: when it was made
	took time.Duration     // guarded by mu: to make it
}

// Topology is that of the newest state, or one of the last moments on a large cluster that changes all the time.
func (t *topology) Topology(context.Context) (*cluster.Topology, error) {
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

// topology is that of this process, which has a control plane.
func (a *Agent) topology() *topology {
	return &topology{state: func() insight.NodesState { return a.control.store.Snapshot() }, clock: a.deps.Clock}
}
