package drover

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/internal/validation"
	"github.com/drover-project/drover/network"
	"github.com/drover-project/drover/service"
)

// validate looks at a group and its tasks; at is its path for the messages. The group is canonical, so pointers with a
// default are not nil.
func (g *TaskGroup) validate(v *validation.Report, j *Job, at string) {
	v.Check(g.Name != "", at+".Name", "must be set")
	v.Check(!strings.ContainsAny(g.Name, "/\x00"), at+".Name", "must not contain '/' or NUL")
	v.Readable(at+".Name", g.Name)
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
		v.Check(p.MaxRunners == 0 || p.MaxRunners >= p.Size, at+".Pool.MaxRunners", "must be at least Size (%d) or 0, got %d", p.Size,
			p.MaxRunners)
		v.Check(j.Type == JobTypeService || j.Type == JobTypeBatch, at+".Pool", "only service and batch jobs have pools")
	}
	constraint.Validate(v, at, g.Constraints)
	constraint.ValidateAffinities(v, at, g.Affinities)
	constraint.ValidateSpreads(v, at, g.Spreads)
	g.RestartPolicy.validate(v, at+".RestartPolicy")
	g.validateReschedule(v, j, at+".ReschedulePolicy")
	g.validateUpdate(v, j, at+".Update")
	v.Check(g.EphemeralDisk.SizeMB >= 10 && g.EphemeralDisk.SizeMB <= maxAmount, at+".EphemeralDisk.SizeMB", "must be from 10 to %d, got %d",
		maxAmount, g.EphemeralDisk.SizeMB)
	g.validateRollOut(v, j, at)
	g.validateDisconnect(v, at)
	g.validateVolumes(v, j, at)
	g.validateScaling(v, at)
	g.Migrate.validate(v, at+".Migrate")
	service.Validate(v, at, g.KnowsPort, g.Services)
	v.Check(g.ShutdownDelay == nil || *g.ShutdownDelay >= 0, at+".ShutdownDelay", "must not be negative")
	v.Check(g.MaxRunDuration == nil || *g.MaxRunDuration > 0, at+".MaxRunDuration", "must be positive")
	if g.MaxRunDuration != nil {
		v.Check(j.Type == JobTypeBatch || j.Type == JobTypeSysBatch, at+".MaxRunDuration", "only batch and sysbatch jobs can have one")
	}
	network.Validate(v, at, g.Networks)
	v.Check(g.Pool == nil || !slices.ContainsFunc(g.Networks, network.IsCNI), at+".Networks.Mode",
		"warm runners are on the node's bridge, whose rules bound them: use mode bridge")
	v.Check(len(g.Tasks) > 0, at+".Tasks", "must have at least one task")
	g.validateTasks(v, at)
}

// validateTasks checks each task, and what they are together: one leader at most, and one task that is no helper.
func (g *TaskGroup) validateTasks(v *validation.Report, at string) {
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
		service.Validate(v, fmt.Sprintf("%s.task[%s]", at, validation.NameOr(t.Name, i)), g.KnowsPort, t.Services)
		t.validate(v, g, fmt.Sprintf("%s.task[%s]", at, validation.NameOr(t.Name, i)))
	}
	v.Check(leaders <= 1, at, "only one task can be the leader, %d are", leaders)
	v.Check(mains > 0 || len(g.Tasks) == 0, at, "needs a task without lifecycle")
}

// validateDisconnect checks the disconnect block, and that the older arguments for the same say nothing else.
func (g *TaskGroup) validateDisconnect(v *validation.Report, at string) {
	d := g.Disconnect
	if d == nil {
		return
	}
	at += ".Disconnect"
	v.Check(d.LostAfter >= 0, at+".LostAfter", "must not be negative, got %v", d.LostAfter)
	v.Check(d.StopOnClientAfter >= 0, at+".StopOnClientAfter", "must not be negative, got %v", d.StopOnClientAfter)
	v.Check(d.LostAfter == 0 || d.StopOnClientAfter == 0, at, "LostAfter and StopOnClientAfter exclude each other")
	switch d.Reconcile {
	case ReconcileBestScore, ReconcileKeepOriginal, ReconcileKeepReplacement, ReconcileLongestRunning:
	default:
		v.Addf(at+".Reconcile", "must be best_score, keep_original, keep_replacement or longest_running, got %q", d.Reconcile)
	}
	legacy := func(name string, old *time.Duration, now time.Duration) {
		v.Check(old == nil || *old == now, at, "excludes %s", name)
	}
	legacy("StopAfterClientDisconnect", g.StopAfterClientDisconnect, d.StopOnClientAfter)
	legacy("MaxClientDisconnect", g.MaxClientDisconnect, d.LostAfter)
}

// validateScaling checks the bounds of a scaling block. The present count must be within them.
func (g *TaskGroup) validateScaling(v *validation.Report, at string) {
	s := g.Scaling
	if s == nil {
		return
	}
	at += ".Scaling"
	low, high := int64(0), int64(MaxGroupCount)
	if s.Min != nil {
		low = *s.Min
		v.Check(low >= 0, at+".Min", "must not be negative, got %d", low)
	}
	if s.Max != nil {
		high = *s.Max
		v.Check(high >= low, at+".Max", "must be at least Min (%d), got %d", low, high)
	}
	if n := int64(*g.Count); n < low || n > high {
		v.Addf(at, "the group's Count %d is not from Min %d to Max %d", n, low, high)
	}
}
