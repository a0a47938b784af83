package scheduler

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

// TestScenarios runs the transcripts in testdata. Each section is a command, and its text what it answers:
//
//	node NAME [key=value…]         put a node; rack=, dc=, pool=, cpu=, mem=, class=, max=, status=, elig=
//	job NAME [key=value…]          register a version; type=, count=, cpu=, mem=, pool=SIZE/MAX, image=, dist=hosts,
//	                               spread=, constraint=l|op|r, update=PARALLEL/CANARY, delay=, attempts=, ports=, stop=
//	eval NAME [by=TRIGGER]         schedule and commit
//	wake NAME                      schedule the job's earliest delayed evaluation, at its time
//	settle                         nodes start what should run and end what should stop
//	client ALLOC STATUS            the node reports the live allocation of that name
//	claim|migrate|healthy|unhealthy ALLOC
//	drained ALLOC                  a drain's deadline met batch work
//	promote NAME | fail NAME       the job's deployment
//	advance DURATION
//	live NAME                      list
//	preemption system|all
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			ar, err := txtar.ParseFile(file)
			require.NoError(t, err)
			w := newWorld()
			for i, f := range ar.Files {
				got := w.command(t, strings.Fields(f.Name))
				if *update {
					ar.Files[i].Data = []byte(got)
				} else {
					require.Equal(t, strings.TrimSpace(string(f.Data)), strings.TrimSpace(got), "-- %s --", f.Name)
				}
			}
			if *update {
				require.NoError(t, os.WriteFile(file, txtar.Format(ar), 0o644))
			}
		})
	}
}

func (w *world) command(t *testing.T, words []string) string {
	t.Helper()
	name := ""
	if len(words) > 1 {
		name = words[1]
	}
	args := map[string]string{}
	for _, word := range words[min(2, len(words)):] {
		k, v, _ := strings.Cut(word, "=")
		args[k] = v
	}
	switch words[0] {
	case "node":
		w.nodeCommand(t, name, args)
	case "job":
		w.putJob(jobOf(t, name, args))
	case "eval":
		return w.describe(w.evalFor(name, cmp.Or(args["by"], drover.TriggerJobRegister)))
	case "wake":
		return w.wake(t, name)
	case "settle":
		w.settle()
	case "client":
		w.change(w.named(t, name), func(a *drover.Allocation) { report(a, words[2], w.now) })
	case "claim":
		w.change(w.named(t, name), func(a *drover.Allocation) { a.Claim = &drover.Claim{RunnerID: name} })
	case "migrate":
		w.change(w.named(t, name), func(a *drover.Allocation) { a.DesiredTransition.Migrate = new(true) })
	case "drained":
		w.change(w.named(t, name), func(a *drover.Allocation) {
			a.DesiredTransition.Migrate, a.DesiredTransition.MigrateDisablePlacement = new(true), new(true)
		})
	case "healthy", "unhealthy":
		w.health(w.named(t, name), words[0] == "healthy")
	case "promote", "fail":
		w.deploymentCommand(name, words[0])
	case "advance":
		d, err := time.ParseDuration(name)
		require.NoError(t, err)
		w.now = w.now.Add(d)
	case "live":
		return w.list(name)
	case "preemption":
		w.config.PreemptionConfig = drover.PreemptionConfig{SystemSchedulerEnabled: true, ServiceSchedulerEnabled: name == "all"}
	default:
		t.Fatalf("unknown command %v", words)
	}
	return ""
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}

func (w *world) nodeCommand(t *testing.T, name string, args map[string]string) {
	t.Helper()
	w.index++
	w.addNode(name, func(n *drover.Node) {
		for _, k := range slices.Sorted(maps.Keys(args)) {
			v := args[k]
			switch k {
			case "dc":
				n.Datacenter = v
			case "pool":
				n.NodePool = v
			case "class":
				n.NodeClass = v
			case "cpu":
				n.NodeResources.Cpu.CpuShares = int64(number(t, v))
			case "mem":
				n.NodeResources.Memory.MemoryMB = int64(number(t, v))
			case "max":
				n.NodeMaxAllocs = number(t, v)
			case "status":
				n.Status = v
			case "elig":
				n.SchedulingEligibility = v
			default:
				n.Meta[k] = v
			}
		}
	})
}

func jobOf(t *testing.T, name string, args map[string]string) *drover.Job {
	t.Helper()
	j := newJob(name, drover.JobTypeService, 1)
	g := j.TaskGroups[0]
	task := g.Tasks[0]
	g.ReschedulePolicy = &drover.ReschedulePolicy{
		Delay: new(30 * time.Second), MaxDelay: new(time.Hour), DelayFunction: "exponential", Unlimited: new(true),
	}
	for _, k := range slices.Sorted(maps.Keys(args)) {
		v := args[k]
		switch k {
		case "type":
			j.Type = v
		case "count":
			g.Count = new(number(t, v))
		case "cpu":
			task.Resources.CPU = number(t, v)
		case "mem":
			task.Resources.MemoryMB = number(t, v)
		case "pool":
			size, most, _ := strings.Cut(v, "/")
			g.Pool = &drover.WarmPool{Size: number(t, size)}
			if most != "" {
				g.Pool.MaxRunners = number(t, most)
			}
		case "image":
			task.Config["image"] = v
		case "dist":
			j.Constraints = append(j.Constraints, &drover.Constraint{Operand: distinctHosts})
		case "spread":
			j.Spreads = append(j.Spreads, spreadOf(t, v))
		case "constraint":
			p := strings.Split(v, "|")
			j.Constraints = append(j.Constraints, &drover.Constraint{LTarget: p[0], Operand: p[1], RTarget: p[2]})
		case "update":
			parallel, canary, _ := strings.Cut(v, "/") //nolint:staticcheck // it does not look into new(…)
			g.Update = &drover.UpdateStrategy{MaxParallel: new(number(t, parallel)), ProgressDeadline: new(10 * time.Minute)}
			if canary != "" {
				g.Update.Canary = number(t, canary)
			}
		case "attempts":
			g.ReschedulePolicy.Unlimited = new(false)
			g.ReschedulePolicy.Attempts, g.ReschedulePolicy.Interval = new(number(t, v)), new(24*time.Hour)
		case "ports":
			n := &drover.NetworkResource{}
			for label := range strings.SplitSeq(v, ",") {
				n.ReservedPorts = append(n.ReservedPorts, drover.Port{Label: "p" + label, Value: number(t, label)})
			}
			g.Networks = append(g.Networks, n)
		case "stop":
			j.Stop = true
		case "priority":
			j.Priority = number(t, v)
		default:
			t.Fatalf("unknown job key %s", k)
		}
	}
	return j
}

// spreadOf reads ATTRIBUTE[:VALUE=PERCENT…] with + for =.
func spreadOf(t *testing.T, v string) *drover.Spread {
	t.Helper()
	parts := strings.Split(v, ":")
	s := &drover.Spread{Attribute: parts[0], Weight: 50}
	for _, p := range parts[1:] {
		value, percent, _ := strings.Cut(p, "+")
		s.SpreadTarget = append(s.SpreadTarget, &drover.SpreadTarget{Value: value, Percent: uint8(number(t, percent))})
	}
	return s
}

// named finds the newest allocation of that name, with @NODE on that node, which is not being stopped, preferring one that
// has not ended.
func (w *world) named(t *testing.T, name string) string {
	t.Helper()
	found := ""
	name, node, _ := strings.Cut(name, "@")
	for _, id := range w.created {
		a := w.allocs[id]
		if a.Name == name && (node == "" || a.NodeID == node) && !a.ServerTerminal() && (found == "" || !a.ClientTerminal()) {
			found = id
		}
	}
	require.NotEmpty(t, found, "allocation %s", name)
	return found
}

func report(a *drover.Allocation, status string, now time.Time) {
	a.ClientStatus = status
	if a.ClientTerminal() {
		a.TaskStates = map[string]*drover.TaskState{"t": {State: drover.TaskStateDead, FinishedAt: now}}
	}
}

func (w *world) health(id string, healthy bool) {
	w.change(id, func(a *drover.Allocation) {
		s := drover.AllocDeploymentStatus{}
		if a.DeploymentStatus != nil {
			s = *a.DeploymentStatus
		}
		s.Healthy = &healthy
		a.DeploymentStatus = &s
		d := new(*w.deployments[a.DeploymentID])
		d.TaskGroups = maps.Clone(d.TaskGroups)
		g := new(*d.TaskGroups[a.TaskGroup])
		if healthy {
			g.HealthyAllocs++
		} else {
			g.UnhealthyAllocs++
		}
		d.TaskGroups[a.TaskGroup] = g
		w.deployments[d.ID] = d
	})
}

func (w *world) deploymentCommand(job, verb string) {
	for id, d := range w.deployments {
		if d.JobID != job || !d.Active() {
			continue
		}
		d = new(*d)
		if verb == "fail" {
			d.Status = drover.DeploymentFailed
		} else {
			d.TaskGroups = maps.Clone(d.TaskGroups)
			for g, s := range d.TaskGroups {
				s = new(*s)
				s.Promoted = true
				d.TaskGroups[g] = s
			}
		}
		w.deployments[id] = d
	}
}

func (w *world) wake(t *testing.T, job string) string {
	t.Helper()
	var next *drover.Evaluation
	for e := range w.EvaluationsByJob("default", job) {
		if e.Status == drover.EvalPending && !e.WaitUntil.IsZero() && (next == nil || e.WaitUntil.Before(next.WaitUntil)) {
			next = e
		}
	}
	require.NotNil(t, next, "no delayed evaluation of %s", job)
	if next.WaitUntil.After(w.now) {
		w.now = next.WaitUntil
	}
	return w.describe(w.evalAs(next))
}

func (w *world) list(job string) string {
	var lines []string
	for _, a := range w.live(job) {
		line := fmt.Sprintf("%s on %s v%d %s", a.Name, a.NodeID, a.Version(), a.ClientStatus)
		if a.Claim != nil {
			line += " claimed"
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return text(lines)
}

func text(lines []string) string {
	if len(lines) == 0 {
		return "nothing\n"
	}
	return strings.Join(lines, "\n") + "\n"
}

// describe prints what an output does, sorted.
func (w *world) describe(out Output) string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for node, allocs := range out.Plan.NodeUpdate {
		for _, a := range allocs {
			if a.DesiredStatus == drover.AllocDesiredRun {
				add("%s on %s waits", a.Name, node)
			} else if a.ClientStatus == drover.AllocClientLost {
				add("lost %s on %s", a.Name, node)
			} else {
				add("stop %s on %s v%d: %s", a.Name, node, a.Version(), a.DesiredDescription)
			}
		}
	}
	for node, allocs := range out.Plan.NodePreemptions {
		for _, a := range allocs {
			if a.PreemptedByAllocation != "" {
				add("%s on %s was evicted for %s", a.Name, node, w.allocs[a.PreemptedByAllocation].Name)
			} else {
				add("evict %s on %s", a.Name, node)
			}
		}
	}
	for node, allocs := range out.Plan.NodeAllocation {
		for _, a := range allocs {
			switch {
			case a.CreateIndex < w.index:
				add("update %s on %s", a.Name, node)
			case a.DeploymentStatus != nil && a.DeploymentStatus.Canary:
				add("place %s on %s as canary", a.Name, node)
			case a.PreviousAllocation != "":
				add("place %s on %s for %s", a.Name, node, w.allocs[a.PreviousAllocation].NodeID)
			default:
				add("place %s on %s", a.Name, node)
			}
		}
	}
	slices.Sort(lines)
	if d := out.Plan.Deployment; d != nil {
		if d.CreateIndex == w.index {
			add("deployment")
		}
		for _, g := range slices.Sorted(maps.Keys(d.TaskGroups)) {
			if s := d.TaskGroups[g]; w.jobs[d.JobID].Type == drover.JobTypeSystem {
				add("deployment wants %d of %s, %d canaries", s.DesiredTotal, g, s.DesiredCanaries)
			}
		}
	}
	for _, u := range out.Plan.DeploymentUpdates {
		add("deployment %s: %s", u.Status, u.StatusDescription)
	}
	for _, e := range out.NewEvals {
		if e.TriggeredBy == drover.TriggerPreemption {
			add("look at %s in %s", e.JobID, e.WaitUntil.Sub(w.now))
		} else if e.Status == drover.EvalBlocked {
			add("blocked, escaped %t, classes %d", e.EscapedComputedClass, len(e.ClassEligibility))
		} else {
			add("look again in %s: %s", e.WaitUntil.Sub(w.now), e.TriggeredBy)
		}
	}
	for _, x := range out.Explanation.Groups {
		if x.Failed > 0 || x.note != "" {
			add("%s", x.Sentence)
		}
	}
	return text(lines)
}
