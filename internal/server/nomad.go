package server

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/eventstream"
	"github.com/drover-project/drover/internal/control/intake"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/httpapi/nomad/cluster"
)

// The Nomad face declares what it needs; these adapters are the whole distance between its words and control's.

type nomadState struct{ *store.Store }

// Snapshot implements answer.State.
func (s nomadState) Snapshot() answer.Snapshot { return templateView{s.Store.Snapshot()} }

type nomadEvents struct{ *eventstream.Buffer }

// Subscribe implements cluster.Events.
func (e nomadEvents) Subscribe(topics map[string][]string, namespace string, index uint64) (cluster.Subscription, error) {
	sub, err := e.Buffer.Subscribe(eventstream.Request{Topics: topics, Namespace: namespace, Index: index})
	if err != nil {
		return nil, err
	}
	return namedEvents{sub}, nil
}

func diffJobs(old, job *drover.Job) any { return intake.Diff(old, job) }
