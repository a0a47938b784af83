package cluster

import (
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/tables"
)

// readSchedulerConfig answers GET /v1/operator/scheduler/configuration.
func (f *face) readSchedulerConfig(w http.ResponseWriter, r *http.Request) error {
	q, err := f.ParseQuery(r)
	if err != nil {
		return err
	}
	snap, index, err := f.AwaitTable(r.Context(), q, tables.SchedulerConfig)
	if err != nil {
		return err
	}
	f.SetIndex(w, index)
	return httpapi.WriteJSON(w, r, http.StatusOK, struct {
		SchedulerConfig *drover.SchedulerConfiguration
		answer.Meta
	}{snap.SchedulerConfig(), f.MetaOf(index)})
}

// writeSchedulerConfig answers PUT /v1/operator/scheduler/configuration; with cas only if nobody changed it meanwhile.
func (f *face) writeSchedulerConfig(w http.ResponseWriter, r *http.Request) error {
	var c drover.SchedulerConfiguration
	if err := httpapi.DecodeJSON(r, &c); err != nil {
		return err
	}
	switch c.SchedulerAlgorithm {
	case "":
		c.SchedulerAlgorithm = drover.SchedulerBinpack
	case drover.SchedulerBinpack, drover.SchedulerSpread:
	default:
		return drover.Errorf(drover.Invalid, "invalid scheduler algorithm: %q", c.SchedulerAlgorithm)
	}
	cas, err := answer.CheckAndSet(r, &c.ModifyIndex)
	if err != nil {
		return err
	}
	updated, o, err := f.Intake.SetSchedulerConfig(r.Context(), c, cas)
	if err != nil {
		return err
	}
	return f.Written(w, r, o, struct {
		Updated bool
		Index   uint64
	}{updated, o.Index})
}

// systemGC answers PUT /v1/system/gc: what has ended is forgotten now, not when it is old.
func (f *face) systemGC(w http.ResponseWriter, r *http.Request) error {
	if err := f.Intake.CollectGarbage(r.Context()); err != nil {
		return err
	}
	return f.Reply(w, r, struct{}{})
}

// reconcileSummaries answers PUT /v1/system/reconcile/summaries.
func (f *face) reconcileSummaries(w http.ResponseWriter, r *http.Request) error {
	if err := f.Intake.ReconcileSummaries(r.Context()); err != nil {
		return err
	}
	return f.Reply(w, r, struct{}{})
}
