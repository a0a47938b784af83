package taskmachine

import (
	"time"

	"github.com/drover-project/drover"
)

// View is what the machine must know of the task's specification. It may change between steps (in-place updates).
type View struct {
	Policy Policy
	// Once: exit 0 ends the task (batch, ephemeral lifecycle tasks). Else it is restarted.
	Once bool
	// Pool: a warm runner. It is never started a second time once it ran, and its end is a failure.
	Pool bool

	KillSignal    string
	KillTimeout   time.Duration // already bounded by the node's maximum
	ShutdownDelay time.Duration
}

// Policy is the restart policy.
type Policy struct {
	Attempts int
	Interval time.Duration
	Delay    time.Duration
	Mode     string // drover.RestartModeFail or …Delay
}

// ViewOf reads the view of a canonicalized task.
func ViewOf(job *drover.Job, group *drover.TaskGroup, task *drover.Task, maxKillTimeout time.Duration) View {
	v := View{Pool: group.Pool != nil, KillSignal: task.KillSignal, ShutdownDelay: task.ShutdownDelay, KillTimeout: 5 * time.Second}
	switch {
	case task.Lifecycle != nil:
		v.Once = task.Lifecycle.Hook == drover.HookPoststop || !task.Lifecycle.Sidecar
	default:
		v.Once = job.Type == drover.JobTypeBatch || job.Type == drover.JobTypeSysBatch
	}
	if task.KillTimeout != nil {
		v.KillTimeout = *task.KillTimeout
	}
	if maxKillTimeout > 0 {
		v.KillTimeout = min(v.KillTimeout, maxKillTimeout)
	}
	policy := task.RestartPolicy
	if policy == nil {
		policy = group.RestartPolicy
	}
	v.Policy = policyOf(policy)
	return v
}

// policyOf copies the policy with zeros for what is missing. No policy at all, and no mode, mean that nothing is
// restarted beyond the attempts. Registration fills in Nomad's defaults before.
func policyOf(p *drover.RestartPolicy) Policy {
	if p == nil {
		return Policy{Mode: drover.RestartModeFail}
	}
	out := Policy{Mode: p.Mode}
	if p.Attempts != nil {
		out.Attempts = *p.Attempts
	}
	if p.Interval != nil {
		out.Interval = *p.Interval
	}
	if p.Delay != nil {
		out.Delay = *p.Delay
	}
	if out.Mode == "" {
		out.Mode = drover.RestartModeFail
	}
	return out
}
