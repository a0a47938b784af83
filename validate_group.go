package drover

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

func (g *TaskGroup) validate(v *report, j *Job, at string) {
	v.Check(g.Name != "", at+".Name", "must be set")
	v.Check(!strings.ContainsAny(g.Name, "/\x00"), at+".Name", "must not contain '/' or NUL")
	v.readable(at+".Name", g.Name)
	v.Check(len(g.Name) <= maxNameBytes, at+".Name", "must have at most %d bytes, got %d", maxNameBytes, len(g.Name))
	v.Check(*g.Count >= 0 && *g.Count <= MaxGroupCount, at+".Count", "must be from 0 to %d, got %d", MaxGroupCount, *g.Count)
	if j.Type == JobTypeSystem || j.Type == JobTypeSysBatch {
		v.Check(len(g.Affinities) == 0, at+".Affinities", "system jobs run on every node that fits: they can't have affinities")
		v.Check(len(g.Spreads) == 0, at+".Spreads", "system jobs run on every node that fits: they can't be spread")
	}
	if j.Type == JobTypeSystem {
		v.Check(*g.Count <= 1, at+".Count", "a system job runs once on each node: must be 0 or 1, got %d", *g.Count)
	}
	if p := g.Pool; p != nil {
		v.Check(p.Size >= 0 && p.Size <= MaxGroupCount, at+".Pool.Size", "must be from 0 to %d, got %d", MaxGroupCount, p.Size)
		v.Check(p.MaxRunners >= 0, at+".Pool.MaxRunners", "must not be negative, got %d", p.MaxRunners)
		v.Check(p.MaxRunners == 0 || p.MaxRunners >= p.Size, at+".Pool.MaxRunners", "must be at least Size (%d) or 0, got %d", p.Size, p.MaxRunners)
		v.Check(j.Type == JobTypeService || j.Type == JobTypeBatch, at+".Pool", "only service and batch jobs have pools")
	}
	validateConstraints(v, at, g.Constraints)
	validateAffinities(v, at, g.Affinities)
	validateSpreads(v, at, g.Spreads)
	g.RestartPolicy.validate(v, at+".RestartPolicy")
	g.validateReschedule(v, j, at+".ReschedulePolicy")
	g.validateUpdate(v, j, at+".Update")
	v.Check(g.EphemeralDisk.SizeMB >= 10 && g.EphemeralDisk.SizeMB <= maxAmount, at+".EphemeralDisk.SizeMB", "must be from 10 to %d, got %d", maxAmount, g.EphemeralDisk.SizeMB)
	g.validateRollOut(v, j, at)
	g.validateDisconnect(v, at)
	g.validateVolumes(v, at)
	g.validateScaling(v, at)
	g.Migrate.validate(v, at+".Migrate")
	validateServices(v, at, g, g.Services)
	v.Check(g.ShutdownDelay == nil || *g.ShutdownDelay >= 0, at+".ShutdownDelay", "must not be negative")
	v.Check(g.MaxRunDuration == nil || *g.MaxRunDuration > 0, at+".MaxRunDuration", "must be positive")
	if g.MaxRunDuration != nil {
		v.Check(j.Type == JobTypeBatch || j.Type == JobTypeSysBatch, at+".MaxRunDuration", "only batch and sysbatch jobs can have one")
	}
	validateNetworks(v, at, g.Networks)
	v.Check(len(g.Tasks) > 0, at+".Tasks", "must have at least one task")
	g.validateTasks(v, at)
}

func (g *TaskGroup) validateTasks(v *report, at string) {
	seen := map[string]bool{}
	leaders, mains := 0, 0
	for i, t := range g.Tasks {
		if t == nil {
			v.Addf(fmt.Sprintf("%s.Tasks[%d]", at, i), "must not be null")
			continue
		}
		v.Check(!seen[t.Name], at, "task %q is defined twice", t.Name)
		seen[t.Name] = true
		if t.Leader {
			leaders++
		}
		if t.Lifecycle == nil {
			mains++
		}
		validateServices(v, fmt.Sprintf("%s.task[%s]", at, nameOr(t.Name, i)), g, t.Services)
		t.validate(v, g, fmt.Sprintf("%s.task[%s]", at, nameOr(t.Name, i)))
	}
	v.Check(leaders <= 1, at, "only one task can be the leader, %d are", leaders)
	v.Check(mains > 0 || len(g.Tasks) == 0, at, "needs a task without lifecycle")
}

func (p *RestartPolicy) validate(v *report, at string) {
	v.Check(p.Mode == RestartModeFail || p.Mode == RestartModeDelay, at+".Mode", "must be fail or delay, got %q", p.Mode)
	v.Check(*p.Attempts >= 0, at+".Attempts", "must not be negative, got %d", *p.Attempts)
	v.Check(*p.Delay >= 0, at+".Delay", "must not be negative")
	v.Check(*p.Attempts == 0 || *p.Interval >= 5*time.Second, at+".Interval", "must be at least 5s, got %v", *p.Interval)
	if *p.Attempts > 0 && *p.Delay > 0 && int64(*p.Attempts) > int64(*p.Interval / *p.Delay) {
		v.Addf(at, "%d attempts with a delay of %v don't fit into the interval of %v", *p.Attempts, *p.Delay, *p.Interval)
	}
}

func (g *TaskGroup) validateReschedule(v *report, j *Job, at string) {
	p := g.ReschedulePolicy
	if p == nil {
		return
	}
	if j.Type == JobTypeSystem || j.Type == JobTypeSysBatch {
		v.Addf(at, "system and sysbatch jobs are never rescheduled: remove it")
		return
	}
	v.Check(*p.Attempts >= 0, at+".Attempts", "must not be negative")
	if *p.Attempts == 0 && !*p.Unlimited {
		return
	}
	v.Check(*p.Delay >= 5*time.Second, at+".Delay", "must be at least 5s, got %v", *p.Delay)
	switch p.DelayFunction {
	case "constant":
	case "exponential", "fibonacci":
		v.Check(*p.MaxDelay == 0 || *p.MaxDelay >= *p.Delay, at+".MaxDelay", "must be at least Delay (%v), got %v", *p.Delay, *p.MaxDelay)
	default:
		v.Addf(at+".DelayFunction", "must be constant, exponential or fibonacci, got %q", p.DelayFunction)
	}
	if !*p.Unlimited {
		v.Check(*p.Interval >= 15*time.Second, at+".Interval", "must be at least 15s, got %v", *p.Interval)
	}
}

func (g *TaskGroup) validateUpdate(v *report, j *Job, at string) {
	u := g.Update
	if u == nil {
		return
	}
	v.Check(*u.MaxParallel >= 0, at+".MaxParallel", "must not be negative, got %d", *u.MaxParallel)
	v.Check(u.Stagger >= 0, at+".Stagger", "must not be negative, got %v", u.Stagger)
	v.Check(u.Canary >= 0, at+".Canary", "must not be negative, got %d", u.Canary)
	v.Check(j.Type != JobTypeSystem || u.Canary <= 100, at+".Canary", "is a percentage of the nodes in a system job: at most 100, got %d", u.Canary)
	v.Check(!u.AutoPromote || u.Canary > 0, at+".AutoPromote", "needs Canary > 0")
	switch u.HealthCheck {
	case "checks", "task_states", "manual":
	default:
		v.Addf(at+".HealthCheck", "must be checks, task_states or manual, got %q", u.HealthCheck)
	}
	if *u.MaxParallel == 0 {
		return
	}
	v.Check(*u.MinHealthyTime >= 0, at+".MinHealthyTime", "must not be negative")
	v.Check(*u.MinHealthyTime < u.HealthyDeadline, at+".MinHealthyTime", "must be less than HealthyDeadline (%v), got %v", u.HealthyDeadline, *u.MinHealthyTime)
	v.Check(*u.ProgressDeadline == 0 || u.HealthyDeadline < *u.ProgressDeadline, at+".ProgressDeadline", "must be 0 or more than HealthyDeadline (%v), got %v", u.HealthyDeadline, *u.ProgressDeadline)
}

func validateNetworks(v *report, at string, networks []*NetworkResource) {
	v.Check(len(networks) <= 1, at+".Networks", "only one network a group, got %d", len(networks))
	labels, statics := map[string]bool{}, map[int]string{}
	for i, n := range networks {
		if n == nil {
			v.Addf(fmt.Sprintf("%s.Networks[%d]", at, i), "must not be null")
			continue
		}
		v.Check(n.Mode == "host" || n.Mode == "bridge" || n.Mode == "none" || strings.HasPrefix(n.Mode, "cni/"), at+".Networks.Mode", "must be host, bridge, none or cni/NAME, got %q", n.Mode)
		for _, p := range append(append([]Port{}, n.ReservedPorts...), n.DynamicPorts...) {
			where := fmt.Sprintf("%s.port[%s]", at, p.Label)
			v.Check(p.Label != "", at+".Networks", "a port has no label")
			v.Check(!labels[p.Label], where, "is defined twice")
			labels[p.Label] = true
			v.Check(p.Value >= 0 && p.Value <= 65535, where+".Value", "must be from 1 to 65535, got %d", p.Value)
			v.Check(p.To >= -1 && p.To <= 65535, where+".To", "must be from -1 to 65535, got %d", p.To)
		}
		for _, p := range n.ReservedPorts {
			where := fmt.Sprintf("%s.port[%s]", at, p.Label)
			v.Check(p.Value > 0, where+".Value", "a static port must be from 1 to 65535, got %d", p.Value)
			if other, taken := statics[p.Value]; taken && !p.IgnoreCollision {
				v.Addf(where, "static port %d is used by %q already", p.Value, other)
			}
			statics[p.Value] = p.Label
		}
	}
}

func (t *Task) validate(v *report, g *TaskGroup, at string) {
	v.Check(t.Name != "", at+".Name", "must be set")
	v.Check(!strings.ContainsAny(t.Name, "/\\\x00") && t.Name != "." && t.Name != ".." && t.Name != "alloc", at+".Name",
		"must be usable as a folder and not be \"alloc\", got %q", t.Name)
	v.readable(at+".Name", t.Name)
	v.Check(len(t.Name) <= maxNameBytes, at+".Name", "must have at most %d bytes, got %d", maxNameBytes, len(t.Name))
	v.Check(t.Driver != "", at+".Driver", "must be set")
	v.Check(*t.KillTimeout >= 0, at+".KillTimeout", "must not be negative")
	v.Check(t.ShutdownDelay >= 0, at+".ShutdownDelay", "must not be negative")
	validateConstraints(v, at, t.Constraints)
	validateAffinities(v, at, t.Affinities)
	t.RestartPolicy.validate(v, at+".RestartPolicy")
	t.Resources.validate(v, at+".Resources")
	t.validateLogs(v, g, at+".LogConfig")
	t.validateInterpolation(v, at)
	if l := t.Lifecycle; l != nil {
		switch l.Hook {
		case HookPrestart, HookPoststart, HookPoststop:
		default:
			v.Addf(at+".Lifecycle.Hook", "must be prestart, poststart or poststop, got %q", l.Hook)
		}
		v.Check(!t.Leader, at+".Leader", "a task with lifecycle can't be the leader")
	}
	for key := range t.Env {
		v.Check(key != "" && !strings.ContainsAny(key, "=\x00"), at+".Env", "%q is no name for a variable", key)
	}
	t.validateFiles(v, g, at)
}

func (t *Task) validateLogs(v *report, g *TaskGroup, at string) {
	files, size := t.LogConfig.MaxFiles, t.LogConfig.MaxFileSizeMB
	v.Check(files >= 1 && files <= 1<<15, at+".MaxFiles", "must be from 1 to %d, got %d", 1<<15, files)
	v.Check(size >= 1 && size <= 1<<15, at+".MaxFileSizeMB", "must be from 1 to %d, got %d", 1<<15, size)
	if files > 0 && size > 0 && !t.LogConfig.Disabled && files > g.EphemeralDisk.SizeMB/size {
		v.Addf(at, "%d files of %d MB may take more than the ephemeral disk's %d MB", files, size, g.EphemeralDisk.SizeMB)
	}
}

func (t *Task) validateFiles(v *report, g *TaskGroup, at string) {
	if d := t.DispatchPayload; d != nil {
		v.Check(d.File != "" && staysInside(d.File), at+".DispatchPayload.File", "must be a path inside the task's folder, got %q", d.File)
	}
	for i, a := range t.Artifacts {
		where := fmt.Sprintf("%s.Artifacts[%d]", at, i)
		if a == nil {
			v.Addf(where, "must not be null")
			continue
		}
		v.Check(a.GetterSource != "", where+".GetterSource", "must be set")
		v.Check(staysInside(a.RelativeDest), where+".RelativeDest", "must not leave the task's folder, got %q", a.RelativeDest)
		v.Check(a.GetterMode == "any" || a.GetterMode == "file" || a.GetterMode == "dir", where+".GetterMode", "must be any, file or dir, got %q", a.GetterMode)
	}
	for i, m := range t.Templates {
		where := fmt.Sprintf("%s.Templates[%d]", at, i)
		if m == nil {
			v.Addf(where, "must not be null")
			continue
		}
		v.Check((m.SourcePath == "") != (m.EmbeddedTmpl == ""), where, "needs either SourcePath or EmbeddedTmpl")
		v.Check(m.DestPath != "", where+".DestPath", "must be set")
		v.Check(staysInside(m.DestPath), where+".DestPath", "must not leave the task's folder, got %q", m.DestPath)
		t.validateTemplate(v, where, m)
		switch m.ChangeMode {
		case "restart", "noop", "script":
		case "signal":
			v.Check(m.ChangeSignal != "", where+".ChangeSignal", "must be set for change_mode signal")
		default:
			v.Addf(where+".ChangeMode", "must be restart, signal, noop or script, got %q", m.ChangeMode)
		}
	}
	for i, m := range t.VolumeMounts {
		where := fmt.Sprintf("%s.VolumeMounts[%d]", at, i)
		if m == nil {
			v.Addf(where, "must not be null")
			continue
		}
		_, known := g.Volumes[m.Volume]
		v.Check(known, where+".Volume", "%q is not a volume of the group", m.Volume)
		v.Check(m.Destination != "", where+".Destination", "must be set")
	}
}

func (r *Resources) validate(v *report, at string) {
	v.Check(r.Cores >= 0, at+".Cores", "must not be negative, got %d", r.Cores)
	v.Check(r.Cores > 0 || r.CPU >= 1, at+".CPU", "must be at least 1, got %d", r.CPU)
	v.Check(r.CPU <= maxAmount && r.MemoryMB <= maxAmount && r.MemoryMaxMB <= maxAmount && r.Cores <= 1<<16, at, "is too large")
	v.Check(r.DiskMB >= 0, at+".DiskMB", "must not be negative, got %d", r.DiskMB)
	v.Check(r.SecretsMB >= 0, at+".SecretsMB", "must not be negative, got %d", r.SecretsMB)
	v.Check(r.MemoryMB >= 10, at+".MemoryMB", "must be at least 10, got %d", r.MemoryMB)
	v.Check(r.MemoryMaxMB == 0 || r.MemoryMaxMB == -1 || r.MemoryMaxMB >= r.MemoryMB, at+".MemoryMaxMB", "must be -1, 0 or at least MemoryMB (%d), got %d", r.MemoryMB, r.MemoryMaxMB)
	validateNetworks(v, at, r.Networks)
	for _, d := range r.Devices {
		v.Check(d != nil && d.Name != "", at+".Devices", "a device has no name")
		v.Check(d == nil || d.Count >= 1 && d.Count <= maxAmount, at+".Devices", "a device's Count must be at least 1")
	}
}

// staysInside reports whether a relative path with interpolation cannot climb out of its folder. Absolute paths are
// taken as relative to the folder, as Nomad does.
func staysInside(p string) bool {
	rel := strings.TrimPrefix(strings.ReplaceAll(p, "${", ""), "/")
	return !strings.ContainsRune(p, 0) && (rel == "" || filepath.IsLocal(rel))
}

// Operands that constraints know.
var constraintOperands = map[string]bool{
	"=": true, "==": true, "is": true, "!=": true, "not": true, "<": true, "<=": true, ">": true, ">=": true,
	"version": true, "semver": true, "regexp": true, "set_contains": true, "set_contains_all": true,
	"set_contains_any": true, "is_set": true, "is_not_set": true, "distinct_hosts": true, "distinct_property": true,
}

func validateConstraints(v *report, at string, list []*Constraint) {
	for i, c := range list {
		where := fmt.Sprintf("%s.Constraints[%d]", at, i)
		if c == nil {
			v.Addf(where, "must not be null")
			continue
		}
		v.interpolated(where+".LTarget", c.LTarget)
		v.interpolated(where+".RTarget", c.RTarget)
		v.Check(constraintOperands[c.Operand], where+".Operand", "unknown operand %q", c.Operand)
		switch c.Operand {
		case "regexp":
			if _, err := CompilePattern(c.RTarget); err != nil {
				v.Addf(where+".RTarget", "is no regular expression: %v", err)
			}
		case "distinct_hosts":
		case "is_set", "is_not_set":
			v.Check(c.RTarget == "", where+".RTarget", "must be empty for %s", c.Operand)
			v.Check(c.LTarget != "", where+".LTarget", "must be set")
		default:
			v.Check(c.LTarget != "", where+".LTarget", "must be set")
			v.Check(c.RTarget != "" || c.Operand == "distinct_property" || c.Operand == "=" || c.Operand == "!=", where+".RTarget", "must be set")
		}
	}
}

func validateAffinities(v *report, at string, list []*Affinity) {
	for i, a := range list {
		where := fmt.Sprintf("%s.Affinities[%d]", at, i)
		if a == nil {
			v.Addf(where, "must not be null")
			continue
		}
		v.Check(constraintOperands[a.Operand] && !strings.HasPrefix(a.Operand, "distinct_"), where+".Operand", "unknown operand %q", a.Operand)
		v.Check(a.Weight >= -100 && a.Weight <= 100 && a.Weight != 0, where+".Weight", "must be from -100 to 100 and not 0, got %d", a.Weight)
	}
}

func validateSpreads(v *report, at string, list []*Spread) {
	for i, s := range list {
		where := fmt.Sprintf("%s.Spreads[%d]", at, i)
		if s == nil {
			v.Addf(where, "must not be null")
			continue
		}
		v.Check(s.Attribute != "", where+".Attribute", "must be set")
		v.Check(s.Weight >= 1 && s.Weight <= 100, where+".Weight", "must be from 1 to 100, got %d", s.Weight)
		sum := 0
		for _, t := range s.SpreadTarget {
			if t != nil {
				sum += int(t.Percent)
			}
		}
		v.Check(sum <= 100, where+".SpreadTarget", "the percents add up to %d, more than 100", sum)
	}
}
