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
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/internal/control/scheduler/feasible"
	"github.com/drover-project/drover/network"
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

// command runs one line of a transcript: its verb, the name of what it is about, and the rest.
func (w *world) command(t *testing.T, words []string) string {
	t.Helper()
	verb, name := words[0], ""
	if len(words) > 1 {
		name = words[1]
	}
	args := map[string]string{}
	for _, word := range words[min(2, len(words)):] {
		k, v, _ := strings.Cut(word, "=")
		args[k] = v
	}
	switch verb {
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
	case "promote", "fail":
		w.deploymentCommand(name, verb)
	case "advance":
		d, err := time.ParseDuration(name)
		require.NoError(t, err)
		w.now = w.now.Add(d)
	case "live":
		return w.list(name)
	case "preemption":
		w.config.PreemptionConfig = drover.PreemptionConfig{SystemSchedulerEnabled: true, ServiceSchedulerEnabled: name == "all"}
	default:
		w.allocCommand(t, verb, w.named(t, name), words)
	}
	return ""
}

// allocCommand changes one allocation.
func (w *world) allocCommand(t *testing.T, verb, id string, words []string) {
	t.Helper()
	edits := map[string]func(*drover.Allocation){
		"client":  func(a *drover.Allocation) { report(a, words[2], w.now) },
		"claim":   func(a *drover.Allocation) { a.Claim = &drover.Claim{RunnerID: words[1]} },
		"migrate": func(a *drover.Allocation) { a.DesiredTransition.Migrate = new(true) },
		"drained": func(a *drover.Allocation) {
			a.DesiredTransition.Migrate, a.DesiredTransition.MigrateDisablePlacement = new(true), new(true)
		},
	}
	switch verb {
	case "healthy", "unhealthy":
		w.health(id, verb == "healthy")
	default:
		require.Contains(t, edits, verb, "unknown command %v", words)
		w.change(id, edits[verb])
	}
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
	j.TaskGroups[0].ReschedulePolicy = &drover.ReschedulePolicy{
		Delay: new(30 * time.Second), MaxDelay: new(time.Hour), DelayFunction: "exponential", Unlimited: new(true),
	}
	for _, k := range slices.Sorted(maps.Keys(args)) {
		require.Contains(t, jobKeys, k)
		jobKeys[k](t, j, args[k])
	}
	return j
}

// jobKeys are the keys of the job command. A job has one group of one task.
var jobKeys = map[string]func(t *testing.T, j *drover.Job, v string){
	"type":     func(_ *testing.T, j *drover.Job, v string) { j.Type = v },
	"stop":     func(_ *testing.T, j *drover.Job, _ string) { j.Stop = true },
	"priority": func(t *testing.T, j *drover.Job, v string) { j.Priority = number(t, v) },
	"count":    func(t *testing.T, j *drover.Job, v string) { j.TaskGroups[0].Count = new(number(t, v)) },
	"cpu":      func(t *testing.T, j *drover.Job, v string) { j.TaskGroups[0].Tasks[0].Resources.CPU = number(t, v) },
	"mem": func(t *testing.T, j *drover.Job, v string) {
		j.TaskGroups[0].Tasks[0].Resources.MemoryMB = number(t, v)
	},
	"image":  func(_ *testing.T, j *drover.Job, v string) { j.TaskGroups[0].Tasks[0].Config["image"] = v },
	"spread": func(t *testing.T, j *drover.Job, v string) { j.Spreads = append(j.Spreads, spreadOf(t, v)) },
	"dist": func(_ *testing.T, j *drover.Job, _ string) {
		j.Constraints = append(j.Constraints, &constraint.Constraint{Operand: feasible.DistinctHosts})
	},
	"constraint": func(_ *testing.T, j *drover.Job, v string) {
		p := strings.Split(v, "|")
		j.Constraints = append(j.Constraints, &constraint.Constraint{LTarget: p[0], Operand: p[1], RTarget: p[2]})
	},
	"pool": func(t *testing.T, j *drover.Job, v string) {
		size, most, _ := strings.Cut(v, "/")
		j.TaskGroups[0].Pool = &drover.WarmPool{Size: number(t, size)}
		if most != "" {
			j.TaskGroups[0].Pool.MaxRunners = number(t, most)
		}
	},
	"update": func(t *testing.T, j *drover.Job, v string) {
		parallel, canary, _ := strings.Cut(v, "/") //nolint:staticcheck // it does not look into new(…)
		u := &drover.UpdateStrategy{MaxParallel: new(number(t, parallel)), ProgressDeadline: new(10 * time.Minute)}
		if canary != "" {
			u.Canary = number(t, canary)
		}
		j.TaskGroups[0].Update = u
	},
	"attempts": func(t *testing.T, j *drover.Job, v string) {
		p := j.TaskGroups[0].ReschedulePolicy
		p.Unlimited, p.Attempts, p.Interval = new(false), new(number(t, v)), new(24*time.Hour)
	},
	"ports": func(t *testing.T, j *drover.Job, v string) {
		n := &network.Resource{}
		for label := range strings.SplitSeq(v, ",") {
			n.ReservedPorts = append(n.ReservedPorts, network.Port{Label: "p" + label, Value: number(t, label)})
		}
		j.TaskGroups[0].Networks = append(j.TaskGroups[0].Networks, n)
	},
}

// spreadOf reads ATTRIBUTE[:VALUE=PERCENT…] with + for =.
func spreadOf(t *testing.T, v string) *constraint.Spread {
	t.Helper()
	parts := strings.Split(v, ":")
	s := &constraint.Spread{Attribute: parts[0], Weight: 50}
	for _, p := range parts[1:] {
		value, percent, _ := strings.Cut(p, "+")
		s.SpreadTarget = append(s.SpreadTarget, &constraint.SpreadTarget{Value: value, Percent: uint8(number(t, percent))})
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
		switch verb {
		case "fail":
			d.Status = drover.DeploymentFailed
		case "pause":
			d.Status = drover.DeploymentPaused
		case "resume":
			d.Status = drover.DeploymentRunning
		default:
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
