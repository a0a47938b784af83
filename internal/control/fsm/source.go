package fsm

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
)

// keepsSource is the cluster version from which on a version that no text came with has that of the version that it was made of.
const keepsSource = 3

// keepSource gives a version that was made of another one, by scaling, a stop or a roll-back, the text of that. It still says when the
// text was given. Nothing happens if there is none, or if the version has a text of its own.
func (e *entry) keepSource(of, made *drover.Job) {
	if cluster.VersionOf(e.txn.Cluster()) < keepsSource || e.txn.JobSubmission(made.Namespace, made.ID, made.Version) != nil {
		return
	}
	kept := e.txn.JobSubmission(of.Namespace, of.ID, of.Version)
	if kept == nil {
		return
	}
	s := *kept
	s.Version = made.Version
	e.txn.PutJobSubmission(&s)
}
