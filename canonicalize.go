package drover

import (
	"slices"
	"strings"
	"time"
)

// Canonicalize fills in every default, so that no later reader needs to know one. It is idempotent and changes j in
// place. Defaults are Nomad's.
func (j *Job) Canonicalize() {
	setDefault(&j.Region, DefaultRegion)
	setDefault(&j.Namespace, DefaultNamespace)
	setDefault(&j.Name, j.ID)
	setDefault(&j.Type, JobTypeService)
	setDefault(&j.NodePool, DefaultNodePool)
	setDefault(&j.Priority, DefaultPriority)
	if len(j.Datacenters) == 0 {
		j.Datacenters = []string{"*"}
	}
	if len(j.Meta) == 0 {
		j.Meta = nil
	}
	canonicalizeAffinities(j.Affinities)
	canonicalizeSpreads(j.Spreads)
	canonicalizeConstraints(j.Constraints)
	if j.Update != nil {
		j.Update.canonicalize()
	}
	if p := j.Periodic; p != nil {
		setPointer(&p.Enabled, true)
		setDefault(&p.SpecType, "cron")
		setDefault(&p.TimeZone, "UTC")
	}
	if p := j.ParameterizedJob; p != nil {
		setDefault(&p.Payload, "optional")
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

func (g *TaskGroup) canonicalize(j *Job) {
	count := 1
	if g.Pool != nil {
		count = g.Pool.Size
		g.Count = &count // what a pool's count is, is Pool.Size's matter alone
	}
	setPointer(&g.Count, count)
	if len(g.Meta) == 0 {
		g.Meta = nil
	}
	canonicalizeAffinities(g.Affinities)
	canonicalizeSpreads(g.Spreads)
	canonicalizeConstraints(g.Constraints)
	if g.EphemeralDisk == nil {
		g.EphemeralDisk = &EphemeralDisk{}
	}
	setDefault(&g.EphemeralDisk.SizeMB, 300)
	if g.RestartPolicy == nil {
		g.RestartPolicy = &RestartPolicy{}
	}
	g.RestartPolicy.canonicalize(j.Type)
	g.canonicalizeReschedule(j)
	g.canonicalizeUpdate(j)
	g.canonicalizeDisconnect()
	canonicalizeServices(g.Services)
	if j.Type == JobTypeService || g.Migrate != nil {
		g.Migrate = mergeMigrate(g.Migrate, j.Migrate)
	}
	if s := g.Scaling; s != nil {
		setPointer(&s.Enabled, true)
		setPointer(&s.Min, int64(*g.Count))
		setDefault(&s.Type, "horizontal")
	}
	for _, n := range g.Networks {
		if n != nil {
			setDefault(&n.Mode, "host")
		}
	}
	for _, t := range g.Tasks {
		if t != nil {
			t.canonicalize(g)
		}
	}
}

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
		setPointer(&g.Disconnect.Replace, !g.PreventRescheduleOnLost)
	}
	setPointer(&g.Disconnect.Replace, true)
	setDefault(&g.Disconnect.Reconcile, ReconcileBestScore)
}

func canonicalizeServices(list []*Service) {
	for _, s := range list {
		if s != nil {
			setDefault(&s.Provider, "consul")
			setDefault(&s.AddressMode, "auto")
			setDefault(&s.OnUpdate, "require_healthy")
			setDefault(&s.Cluster, "default")
		}
	}
}

func (g *TaskGroup) canonicalizeReschedule(j *Job) {
	if j.Type == JobTypeSystem || j.Type == JobTypeSysBatch {
		return // Validate refuses one that was given
	}
	p := ReschedulePolicy{}
	if j.Reschedule != nil {
		p = *j.Reschedule
	}
	if own := g.ReschedulePolicy; own != nil {
		overridePointer(&p.Attempts, own.Attempts)
		overridePointer(&p.Interval, own.Interval)
		overridePointer(&p.Delay, own.Delay)
		overridePointer(&p.MaxDelay, own.MaxDelay)
		overridePointer(&p.Unlimited, own.Unlimited)
		if own.DelayFunction != "" {
			p.DelayFunction = own.DelayFunction
		}
	}
	if j.Type == JobTypeBatch {
		setPointer(&p.Attempts, 1)
		setPointer(&p.Interval, 24*time.Hour)
		setPointer(&p.Delay, 5*time.Second)
		setDefault(&p.DelayFunction, "constant")
		setPointer(&p.MaxDelay, 0)
		setPointer(&p.Unlimited, false)
	} else {
		setPointer(&p.Attempts, 0)
		setPointer(&p.Interval, 0)
		setPointer(&p.Delay, 30*time.Second)
		setDefault(&p.DelayFunction, "exponential")
		setPointer(&p.MaxDelay, time.Hour)
		setPointer(&p.Unlimited, *p.Attempts == 0)
	}
	g.ReschedulePolicy = &p
}

func (g *TaskGroup) canonicalizeUpdate(j *Job) {
	if j.Type != JobTypeService && g.Update == nil && (j.Update == nil || j.Type != JobTypeSystem) {
		return
	}
	u := UpdateStrategy{}
	if j.Update != nil {
		u = *j.Update
	}
	if own := g.Update; own != nil {
		overridePointer(&u.MaxParallel, own.MaxParallel)
		overridePointer(&u.MinHealthyTime, own.MinHealthyTime)
		overridePointer(&u.ProgressDeadline, own.ProgressDeadline)
		override(&u.Stagger, own.Stagger)
		override(&u.HealthCheck, own.HealthCheck)
		override(&u.HealthyDeadline, own.HealthyDeadline)
		override(&u.Canary, own.Canary)
		override(&u.AutoRevert, own.AutoRevert)
		override(&u.AutoPromote, own.AutoPromote)
	}
	u.canonicalize()
	g.Update = &u
}

func (u *UpdateStrategy) canonicalize() {
	setDefault(&u.Stagger, 30*time.Second)
	setPointer(&u.MaxParallel, 1)
	setDefault(&u.HealthCheck, "checks")
	setPointer(&u.MinHealthyTime, 10*time.Second)
	setDefault(&u.HealthyDeadline, 5*time.Minute)
	setPointer(&u.ProgressDeadline, 10*time.Minute)
}

func mergeMigrate(own, jobs *MigrateStrategy) *MigrateStrategy {
	m := MigrateStrategy{}
	if jobs != nil {
		m = *jobs
	}
	if own != nil {
		overridePointer(&m.MaxParallel, own.MaxParallel)
		overridePointer(&m.MinHealthyTime, own.MinHealthyTime)
		override(&m.HealthCheck, own.HealthCheck)
		override(&m.HealthyDeadline, own.HealthyDeadline)
	}
	setPointer(&m.MaxParallel, 1)
	setDefault(&m.HealthCheck, "checks")
	setPointer(&m.MinHealthyTime, 10*time.Second)
	setDefault(&m.HealthyDeadline, 5*time.Minute)
	return &m
}

func (p *RestartPolicy) canonicalize(jobType string) {
	attempts, interval := 2, 30*time.Minute
	if jobType == JobTypeBatch || jobType == JobTypeSysBatch {
		attempts, interval = 3, 24*time.Hour
	}
	setPointer(&p.Attempts, attempts)
	setPointer(&p.Interval, interval)
	setPointer(&p.Delay, 15*time.Second)
	setDefault(&p.Mode, RestartModeFail)
}

func (t *Task) canonicalize(g *TaskGroup) {
	setPointer(&t.KillTimeout, 5*time.Second)
	if t.LogConfig == nil {
		t.LogConfig = &LogConfig{}
	}
	setDefault(&t.LogConfig.MaxFiles, 10)
	setDefault(&t.LogConfig.MaxFileSizeMB, 10)
	if t.Resources == nil {
		t.Resources = &Resources{}
	}
	if t.Resources.Cores == 0 {
		setDefault(&t.Resources.CPU, 100)
	}
	setDefault(&t.Resources.MemoryMB, 300)
	for _, d := range t.Resources.Devices {
		if d != nil {
			setDefault(&d.Count, 1)
		}
	}
	canonicalizeAffinities(t.Affinities)
	canonicalizeConstraints(t.Constraints)
	canonicalizeServices(t.Services)
	restart := *g.RestartPolicy
	if own := t.RestartPolicy; own != nil {
		overridePointer(&restart.Attempts, own.Attempts)
		overridePointer(&restart.Interval, own.Interval)
		overridePointer(&restart.Delay, own.Delay)
		override(&restart.Mode, own.Mode)
		override(&restart.RenderTemplates, own.RenderTemplates)
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
			setDefault(&a.GetterMode, "any")
			setDefault(&a.RelativeDest, "local/")
		}
	}
	for _, m := range t.Templates {
		if m != nil {
			setDefault(&m.ChangeMode, "restart")
			setDefault(&m.Perms, "0644")
			setDefault(&m.LeftDelim, "{{")
			setDefault(&m.RightDelim, "}}")
			setPointer(&m.Splay, 5*time.Second)
			m.ChangeSignal = strings.ToUpper(m.ChangeSignal)
		}
	}
	for _, m := range t.VolumeMounts {
		if m != nil {
			setDefault(&m.PropagationMode, "private")
		}
	}
}

func canonicalizeAffinities(list []*Affinity) {
	for _, a := range list {
		if a != nil {
			setDefault(&a.Weight, 50)
			setDefault(&a.Operand, "=")
		}
	}
}

func canonicalizeConstraints(list []*Constraint) {
	for _, c := range list {
		if c != nil {
			setDefault(&c.Operand, "=")
		}
	}
}

func canonicalizeSpreads(list []*Spread) {
	for _, s := range list {
		if s != nil {
			setDefault(&s.Weight, 50)
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

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func setPointer[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

func override[T comparable](field *T, value T) {
	var zero T
	if value != zero {
		*field = value
	}
}

func overridePointer[T any](field **T, value *T) {
	if value != nil {
		*field = value
	}
}
