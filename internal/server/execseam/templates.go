package execseam

import (
	"context"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/control/intake"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
)

// Templates are the environments that somebody else registered as template jobs, for the Poseidon face.
type Templates struct {
	Store  *store.Store
	Intake *intake.Intake
}

// Templates implements poseidon.Templates.
func (t Templates) Templates(context.Context) []execution.Environment {
	return environment.FromTemplates(t.Store.Snapshot().Jobs(drover.DefaultNamespace, environment.TemplatePrefix))
}

// RemoveTemplate implements poseidon.Templates.
func (t Templates) RemoveTemplate(ctx context.Context, environmentID string) error {
	id := environment.TemplatePrefix + environmentID
	if t.Store.Snapshot().Job(drover.DefaultNamespace, id) == nil {
		return nil
	}
	_, err := t.Intake.DeregisterJob(ctx, drover.DeregisterRequest{Namespace: drover.DefaultNamespace, ID: id, Purge: true})
	return err
}

// templateView shows the Nomad face environments as template jobs too.
type templateView struct{ answer.Snapshot }

// Job returns the job, or the template of the environment that has such a job's number.
func (v templateView) Job(namespace, id string) *drover.Job {
	return environment.ShownJob(v.Snapshot.Job, namespace, id)
}
