package environment

import (
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/network"
)

// TemplatePrefix begins the ids of the jobs in which Poseidon keeps environments on a Nomad cluster.
const TemplatePrefix = "template-"

// The names in a template job.
const (
	templateGroup  = "default-group"
	templateTask   = "default-task"
	templateConfig = "config"
	templateSize   = "prewarmingPoolSize"
)

// Template shows an environment with a number as the template job that Poseidon would have made of it, for tools that
// look there; kept is the job in which it really stands. Nobody schedules it.
func Template(env execution.Environment, kept *drover.Job) *drover.Job {
	id := TemplatePrefix + env.ID
	return &drover.Job{
		Region: kept.Region, Namespace: kept.Namespace, ID: id, Name: id, Type: drover.JobTypeBatch, Priority: kept.Priority,
		Datacenters: kept.Datacenters, Status: kept.Status, Version: kept.Version, SubmitTime: kept.SubmitTime,
		CreateIndex: kept.CreateIndex, ModifyIndex: kept.ModifyIndex, JobModifyIndex: kept.JobModifyIndex,
		TaskGroups: []*drover.TaskGroup{templateRunner(env), {
			Name: templateConfig, Count: new(0),
			Meta: map[string]string{"used": "false", templateSize: strconv.Itoa(env.PoolSize)},
			Tasks: []*drover.Task{{
				Name: templateConfig, Driver: "exec", Config: map[string]any{"command": "true"},
				Resources: &drover.Resources{CPU: 1, MemoryMB: 10},
			}},
		}},
	}
}

// templateRunner is the group in which Poseidon describes a runner. Its task has the command that Poseidon would
// start, although nothing runs it here. Its CPU and memory are those in force.
func templateRunner(env execution.Environment) *drover.TaskGroup {
	mode := "none"
	if env.Network {
		mode = ""
	}
	return &drover.TaskGroup{
		Name: templateGroup, Count: new(1), Networks: templateNetworks(env),
		Tasks: []*drover.Task{{
			Name: templateTask, Driver: env.Driver, KillTimeout: new(time.Duration(0)), KillSignal: "SIGKILL",
			Config:    map[string]any{"image": env.Image, "command": "sleep", "args": []any{"infinity"}, "network_mode": mode},
			Resources: &drover.Resources{CPU: env.CPU, MemoryMB: env.MemoryMB, MemoryMaxMB: env.MemoryMaxMB},
			LogConfig: &drover.LogConfig{MaxFiles: 1, MaxFileSizeMB: 1},
		}},
	}
}

// templateNetworks has no mode, as Poseidon's jobs: Nomad then uses the host's network.
func templateNetworks(env execution.Environment) []*network.Resource {
	if !env.Network {
		return nil
	}
	n := &network.Resource{}
	for _, p := range env.ExposedPorts {
		n.DynamicPorts = append(n.DynamicPorts, network.Port{Label: strconv.Itoa(int(p)), To: int(p)})
	}
	return []*network.Resource{n}
}

// FromTemplate reads the environment out of a template job that Poseidon registered. The driver is left to the
// reader. Errors: NotFound if it is no such job.
func FromTemplate(job *drover.Job) (env execution.Environment, err error) {
	id, ok := strings.CutPrefix(job.ID, TemplatePrefix)
	number, badID := strconv.ParseUint(id, 10, 31)
	runner, config := job.Group(templateGroup), job.Group(templateConfig)
	if !ok || badID != nil || job.Stop || runner == nil || config == nil || len(runner.Tasks) != 1 {
		return env, drover.Errorf(drover.NotFound, "job %q is not an environment's template", job.ID)
	}
	env.ID = strconv.FormatUint(number, 10)
	env.PoolSize, _ = strconv.Atoi(config.Meta[templateSize]) // none: a pool of 0, as with Poseidon
	t := runner.Tasks[0]
	env.Image, _ = t.Config["image"].(string)
	if t.Resources != nil {
		env.CPU, env.MemoryMaxMB = t.Resources.CPU, t.Resources.MemoryMaxMB
		env.MemoryMB = min(t.Resources.MemoryMB, env.MemoryMaxMB)
	}
	if mode, _ := t.Config["network_mode"].(string); mode != "none" {
		env.Network = len(runner.Networks) > 0
	}
	for _, n := range runner.Networks {
		for _, p := range n.DynamicPorts {
			if p.To > 0 && p.To < 1<<16 && env.Network {
				env.ExposedPorts = append(env.ExposedPorts, uint16(p.To))
			}
		}
	}
	return env, nil
}
