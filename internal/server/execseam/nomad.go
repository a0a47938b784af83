package execseam

import (
	"github.com/drover-project/drover/internal/control/eventstream"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/httpapi/nomad/cluster"
)

// State is the store as the Nomad face reads it: environments are shown as template jobs, too.
type State struct{ *store.Store }

// Snapshot implements answer.State.
func (s State) Snapshot() answer.Snapshot { return templateView{s.Store.Snapshot()} }

// Events is the event stream as the Nomad face follows it: it tells of environments as environments.
type Events struct{ *eventstream.Buffer }

// Subscribe implements cluster.Events.
func (e Events) Subscribe(topics map[string][]string, namespace string, index uint64) (cluster.Subscription, error) {
	sub, err := e.Buffer.Subscribe(eventstream.Request{Topics: topics, Namespace: namespace, Index: index})
	if err != nil {
		return nil, err
	}
	return namedEvents{sub}, nil
}
