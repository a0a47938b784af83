package scenario

import (
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/network"
)

// Options are a step's key=value arguments.
type Options map[string]int

// OptionsOf reads the arguments of the form key=number; the others, such as names, are skipped.
func OptionsOf(args []string) Options {
	o := Options{}
	for _, a := range args {
		if k, v, ok := strings.Cut(a, "="); ok {
			o[k], _ = strconv.Atoi(v) // what is no number is 0
		}
	}
	return o
}

// or returns an option, or the value if the step does not give it. Indexing takes 0 for that.
func (o Options) Or(key string, value int) int {
	if v, ok := o[key]; ok {
		return v
	}
	return value
}

// JobOf makes the job that a step asks for.
func JobOf(kind, id string, o Options) *drover.Job {
	task := func(name string) *drover.Task {
		return &drover.Task{
			Name: name, Driver: "fake", KillTimeout: new(3 * time.Second),
			Config: map[string]any{
				"fail": o["fail"], "startfail": o["startfail"], "run": o["run"], "v": o["v"],
			},
			Resources: &drover.Resources{CPU: o.Or("cpu", 100), MemoryMB: 64},
			RestartPolicy: &drover.RestartPolicy{
				Attempts: new(1), Interval: new(30 * time.Second), Delay: new(2 * time.Second), Mode: drover.RestartModeFail,
			},
		}
	}
	g := &drover.TaskGroup{Name: "g", Count: new(o.Or("count", 1)), EphemeralDisk: &drover.EphemeralDisk{SizeMB: 100}}
	for i := range o.Or("tasks", 1) {
		g.Tasks = append(g.Tasks, task("t"+strconv.Itoa(i)))
	}
	if o["ports"]+o["static"] > 0 {
		n := &network.Resource{}
		if o["ports"] > 0 {
			n.DynamicPorts = []network.Port{{Label: "http"}}
		}
		if o["static"] > 0 {
			n.ReservedPorts = []network.Port{{Label: "fixed", Value: o["static"]}}
		}
		g.Networks = []*network.Resource{n}
	}
	j := &drover.Job{ID: id, Type: kind, Datacenters: []string{"*"}, TaskGroups: []*drover.TaskGroup{g}, Priority: o.Or("priority", 50)}
	switch kind {
	case drover.JobTypeService:
		g.ReschedulePolicy = &drover.ReschedulePolicy{
			Unlimited: new(true), Delay: new(5 * time.Second), DelayFunction: "exponential", MaxDelay: new(30 * time.Second),
		}
		g.Update = &drover.UpdateStrategy{
			MaxParallel: new(o["update"]), MinHealthyTime: new(3 * time.Second), HealthyDeadline: 30 * time.Second,
			ProgressDeadline: new(2 * time.Minute), HealthCheck: "task_states", Canary: o["canary"] * min(o["update"], 1),
			AutoPromote: o["canary"]*o["update"] > 0, AutoRevert: o["v"] == 2,
		}
	case drover.JobTypeSystem:
		g.Update = &drover.UpdateStrategy{
			MaxParallel: new(o["update"]), MinHealthyTime: new(3 * time.Second), HealthyDeadline: 30 * time.Second,
			ProgressDeadline: new(2 * time.Minute), HealthCheck: "task_states", Canary: 34 * o["canary"] * min(o["update"], 1),
			AutoPromote: o["canary"]*o["update"] > 0, AutoRevert: o["v"] == 2,
		}
	case drover.JobTypeBatch:
		g.ReschedulePolicy = &drover.ReschedulePolicy{
			Attempts: new(2), Interval: new(time.Hour), Delay: new(5 * time.Second), DelayFunction: "constant", Unlimited: new(false),
		}
	case drover.JobTypeSysBatch:
		for _, t := range g.Tasks {
			t.Config["run"] = 5
		}
	}
	if o["template"] > 0 {
		j.ParameterizedJob = &drover.ParameterizedJobConfig{}
	}
	if away := time.Duration(o["away"]) * time.Second; away > 0 && kind != drover.JobTypeSysBatch {
		strategies := []string{
			drover.ReconcileBestScore, drover.ReconcileKeepOriginal, drover.ReconcileKeepReplacement, drover.ReconcileLongestRunning,
		}
		g.Disconnect = &drover.DisconnectStrategy{LostAfter: away, Replace: new(o["stay"] == 0), Reconcile: strategies[o["away"]%4]}
	}
	if o["distinct"] > 0 {
		g.Constraints = []*constraint.Constraint{{Operand: "distinct_hosts", RTarget: "true"}}
	}
	if o["spread"] > 0 {
		g.Spreads = []*constraint.Spread{{Attribute: "${attr.rack}", Weight: 50}}
	}
	return j
}

// EnvOf makes the environment that a step asks for.
func EnvOf(id string, o Options) execution.Environment {
	e := execution.Environment{
		ID: id, Image: "host", PoolSize: o.Or("size", 2), CPU: o.Or("cpu", 50), MemoryMB: 32, MemoryMaxMB: 64,
		DiskMB: 10,
	}
	if m := o["max"]; m >= e.PoolSize {
		e.MaxRunners = m
	}
	return e
}
