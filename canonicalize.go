package drover

import (
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/network"
	"github.com/drover-project/drover/service"
)

// Canonicalize fills in every default, so that no later reader needs to know one. It is idempotent and changes j in
// place. Defaults are Nomad's.
func (j *Job) Canonicalize() {
	optional.Default(&j.Region, DefaultRegion)
	optional.Default(&j.Namespace, DefaultNamespace)
	optional.Default(&j.Name, j.ID)
	optional.Default(&j.Type, JobTypeService)
	optional.Default(&j.NodePool, DefaultNodePool)
	optional.Default(&j.Priority, DefaultPriority)
	if len(j.Datacenters) == 0 {
		j.Datacenters = []string{"*"}
	}
	if len(j.Meta) == 0 {
		j.Meta = nil
	}
	constraint.CanonicalizeAffinities(j.Affinities)
	constraint.CanonicalizeSpreads(j.Spreads)
	constraint.Canonicalize(j.Constraints)
	if j.Update != nil {
		j.Update.canonicalize()
	}
	if p := j.Periodic; p != nil {
		optional.DefaultPointer(&p.Enabled, true)
		optional.Default(&p.SpecType, "cron")
		optional.Default(&p.TimeZone, "UTC")
	}
	if p := j.ParameterizedJob; p != nil {
		optional.Default(&p.Payload, "optional")
	}
	for _, g := range j.TaskGroups {
		if g != nil {
			g.canonicalize(j)
		}
	}
	if len(j.TaskGroups) > 0 && j.Update == nil && j.Type == JobTypeService {
		j.Update = &UpdateStrategy{}
		j.Update.canonicalize()
	}
}

// canonicalize fills in a group's defaults. What is also a block of the job (update, reschedule, migrate) is merged
// argument by argument: the group's wins, then the job's, then the default. Scaling's least count is the group's count.
func (g *TaskGroup) canonicalize(j *Job) {
	count := 1
	if g.Pool != nil {
		count = g.Pool.Size
		g.Count = &count // what a pool's count is, is Pool.Size's matter alone
	}
	optional.DefaultPointer(&g.Count, count)
	if len(g.Meta) == 0 {
		g.Meta = nil
	}
	constraint.CanonicalizeAffinities(g.Affinities)
	constraint.CanonicalizeSpreads(g.Spreads)
	constraint.Canonicalize(g.Constraints)
	if g.EphemeralDisk == nil {
		g.EphemeralDisk = &EphemeralDisk{}
	}
	optional.Default(&g.EphemeralDisk.SizeMB, 300)
	if g.RestartPolicy == nil {
		g.RestartPolicy = &RestartPolicy{}
	}
	g.RestartPolicy.canonicalize(j.Type)
	g.canonicalizeReschedule(j)
	g.canonicalizeUpdate(j)
	g.canonicalizeDisconnect()
	service.Canonicalize(j.Name, g.Name, "", g.Services)
	if j.Type == JobTypeService || g.Migrate != nil {
		g.Migrate = mergeMigrate(g.Migrate, j.Migrate)
	}
	if s := g.Scaling; s != nil {
		optional.DefaultPointer(&s.Enabled, true)
		optional.DefaultPointer(&s.Min, int64(*g.Count))
		optional.Default(&s.Type, "horizontal")
	}
	network.Canonicalize(g.Networks)
	for _, t := range g.Tasks {
		if t != nil {
			t.canonicalize(j, g)
		}
	}
}

// canonicalizeDisconnect makes a disconnect block of the three older arguments for the same. A block that was given
// wins; Validate refuses arguments that contradict it.
func (g *TaskGroup) canonicalizeDisconnect() {
	if g.Disconnect == nil {
		if g.MaxClientDisconnect == nil && g.StopAfterClientDisconnect == nil && !g.PreventRescheduleOnLost {
			return
		}
		g.Disconnect = &DisconnectStrategy{}
		if d := g.MaxClientDisconnect; d != nil {
			g.Disconnect.LostAfter = *d
		}
		if d := g.StopAfterClientDisconnect; d != nil {
			g.Disconnect.StopOnClientAfter = *d
		}
		optional.DefaultPointer(&g.Disconnect.Replace, !g.PreventRescheduleOnLost)
	}
	optional.DefaultPointer(&g.Disconnect.Replace, true)
	optional.Default(&g.Disconnect.Reconcile, ReconcileBestScore)
}

// canonicalizeReschedule merges the policy. A batch job is replaced once a day, all others without end with a growing
// delay. Given attempts make the default of Unlimited false.
func (g *TaskGroup) canonicalizeReschedule(j *Job) {
	if j.Type == JobTypeSystem || j.Type == JobTypeSysBatch {
		return // Validate refuses one that was given
	}
	p := ReschedulePolicy{}
	if j.Reschedule != nil {
		p = *j.Reschedule
	}
	if own := g.ReschedulePolicy; own != nil {
		optional.Override(&p.Attempts, own.Attempts)
		optional.Override(&p.Interval, own.Interval)
		optional.Override(&p.Delay, own.Delay)
		optional.Override(&p.MaxDelay, own.MaxDelay)
		optional.Override(&p.Unlimited, own.Unlimited)
		if own.DelayFunction != "" {
			p.DelayFunction = own.DelayFunction
		}
	}
	if j.Type == JobTypeBatch {
		optional.DefaultPointer(&p.Attempts, 1)
		optional.DefaultPointer(&p.Interval, 24*time.Hour)
		optional.DefaultPointer(&p.Delay, 5*time.Second)
		optional.Default(&p.DelayFunction, "constant")
		optional.DefaultPointer(&p.MaxDelay, 0)
		optional.DefaultPointer(&p.Unlimited, false)
	} else {
		optional.DefaultPointer(&p.Attempts, 0)
		optional.DefaultPointer(&p.Interval, 0)
		optional.DefaultPointer(&p.Delay, 30*time.Second)
		optional.Default(&p.DelayFunction, "exponential")
		optional.DefaultPointer(&p.MaxDelay, time.Hour)
		optional.DefaultPointer(&p.Unlimited, *p.Attempts == 0)
	}
	g.ReschedulePolicy = &p
}

// canonicalizeUpdate merges the update block. Services always have one. System jobs have one only if the job or the
// group says so: they are then rolled out with deployments.
func (g *TaskGroup) canonicalizeUpdate(j *Job) {
	if j.Type != JobTypeService && g.Update == nil && (j.Update == nil || j.Type != JobTypeSystem) {
		return
	}
	u := UpdateStrategy{}
	if j.Update != nil {
		u = *j.Update
	}
	if own := g.Update; own != nil {
		optional.Override(&u.MaxParallel, own.MaxParallel)
		optional.Override(&u.MinHealthyTime, own.MinHealthyTime)
		optional.Override(&u.ProgressDeadline, own.ProgressDeadline)
		optional.Override(&u.Stagger, own.Stagger)
		optional.Override(&u.HealthCheck, own.HealthCheck)
		optional.Override(&u.HealthyDeadline, own.HealthyDeadline)
		optional.Override(&u.Canary, own.Canary)
		optional.Override(&u.AutoRevert, own.AutoRevert)
		optional.Override(&u.AutoPromote, own.AutoPromote)
	}
	u.canonicalize()
	g.Update = &u
}

// canonicalize fills in Nomad's defaults for a roll-out.
func (u *UpdateStrategy) canonicalize() {
	optional.Default(&u.Stagger, 30*time.Second)
	optional.DefaultPointer(&u.MaxParallel, 1)
	optional.Default(&u.HealthCheck, "checks")
	optional.DefaultPointer(&u.MinHealthyTime, 10*time.Second)
	optional.Default(&u.HealthyDeadline, 5*time.Minute)
	optional.DefaultPointer(&u.ProgressDeadline, 10*time.Minute)
}

// mergeMigrate returns the group's migrate block over the job's over the defaults, as a copy.
func mergeMigrate(own, jobs *MigrateStrategy) *MigrateStrategy {
	m := MigrateStrategy{}
	if jobs != nil {
		m = *jobs
	}
	if own != nil {
		optional.Override(&m.MaxParallel, own.MaxParallel)
		optional.Override(&m.MinHealthyTime, own.MinHealthyTime)
		optional.Override(&m.HealthCheck, own.HealthCheck)
		optional.Override(&m.HealthyDeadline, own.HealthyDeadline)
	}
	optional.DefaultPointer(&m.MaxParallel, 1)
	optional.Default(&m.HealthCheck, "checks")
	optional.DefaultPointer(&m.MinHealthyTime, 10*time.Second)
	optional.Default(&m.HealthyDeadline, 5*time.Minute)
	return &m
}

// canonicalize fills in the defaults: two attempts within half an hour, or three within a day for what ends by itself.
func (p *RestartPolicy) canonicalize(jobType string) {
	attempts, interval := 2, 30*time.Minute
	if jobType == JobTypeBatch || jobType == JobTypeSysBatch {
		attempts, interval = 3, 24*time.Hour
	}
	optional.DefaultPointer(&p.Attempts, attempts)
	optional.DefaultPointer(&p.Interval, interval)
	optional.DefaultPointer(&p.Delay, 15*time.Second)
	optional.Default(&p.Mode, RestartModeFail)
}

// canonicalize fills in a task's defaults; the group must have its own already, because the restart policy is
// inherited. Reserved cores bring their own CPU share, so there is no default for it beside them.
func (t *Task) canonicalize(j *Job, g *TaskGroup) {
	optional.DefaultPointer(&t.KillTimeout, 5*time.Second)
	if t.LogConfig == nil {
		t.LogConfig = &LogConfig{}
	}
	if e := t.LogConfig.Enabled; e != nil {
		t.LogConfig.Disabled, t.LogConfig.Enabled = !*e, nil
	}
	optional.Default(&t.LogConfig.MaxFiles, 10)
	optional.Default(&t.LogConfig.MaxFileSizeMB, 10)
	if t.Resources == nil {
		t.Resources = &Resources{}
	}
	if t.Resources.Cores == 0 {
		optional.Default(&t.Resources.CPU, 100)
	}
	optional.Default(&t.Resources.MemoryMB, 300)
	network.Canonicalize(t.Resources.Networks)
	for _, d := range t.Resources.Devices {
		if d != nil {
			optional.Default(&d.Count, 1)
		}
	}
	constraint.CanonicalizeAffinities(t.Affinities)
	constraint.Canonicalize(t.Constraints)
	service.Canonicalize(j.Name, g.Name, t.Name, t.Services)
	restart := *g.RestartPolicy
	if own := t.RestartPolicy; own != nil {
		optional.Override(&restart.Attempts, own.Attempts)
		optional.Override(&restart.Interval, own.Interval)
		optional.Override(&restart.Delay, own.Delay)
		optional.Override(&restart.Mode, own.Mode)
		optional.Override(&restart.RenderTemplates, own.RenderTemplates)
	}
	t.RestartPolicy = &restart
	if len(t.Env) == 0 {
		t.Env = nil
	}
	if len(t.Meta) == 0 {
		t.Meta = nil
	}
	for _, a := range t.Artifacts {
		if a != nil {
			optional.Default(&a.GetterMode, "any")
			optional.Default(&a.RelativeDest, "local/")
		}
	}
	for _, m := range t.Templates {
		if m != nil {
			optional.Default(&m.ChangeMode, "restart")
			optional.Default(&m.Perms, "0644")
			optional.Default(&m.LeftDelim, "{{")
			optional.Default(&m.RightDelim, "}}")
			optional.DefaultPointer(&m.Splay, 5*time.Second)
			m.ChangeSignal = strings.ToUpper(m.ChangeSignal)
		}
	}
	for _, m := range t.VolumeMounts {
		if m != nil {
			optional.Default(&m.PropagationMode, "private")
		}
	}
}

// Drivers returns the drivers that the group's tasks need, sorted, each once.
func (g *TaskGroup) Drivers() []string {
	var out []string
	for _, t := range g.Tasks {
		out = append(out, t.Driver)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
