package nomadbackend

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"

	"github.com/hashicorp/nomad/api"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/environment"
)

// Names on the cluster.
const (
	envPrefix    = "drover-environment-"
	runnerPrefix = "drover-runner-"
	noteGroup    = "note" // a group without allocations: its meta is changed in place
	metaEnv      = "drover_environment"
	metaGen      = "drover_generation"
	metaClaim    = "drover_claim"
)

// generation names what runners are made of; pool sizes are not part of it.
func generation(e execution.Environment, opts environment.Options) (string, error) {
	e = environment.Canonicalize(e)
	e.PoolSize, e.MaxRunners, e.Meta, e.IdleTimeout, e.Env, e.User, e.WorkDir = 0, 0, nil, 0, nil, "", ""
	job, err := environment.ToJob(e, opts)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(job.TaskGroups)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

// convert moves a value between Nomad's types and ours, which have the same wire names.
func convert(from, to any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// environmentJob is what keeps the environment on the cluster. It is parameterized, so that nothing runs for it.
func (b *Backend) environmentJob(e execution.Environment) (*api.Job, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	job, err := b.runnerGroup(e)
	if err != nil {
		return nil, err
	}
	job.ID, job.Name = new(envPrefix+e.ID), new(envPrefix+e.ID)
	job.ParameterizedJob = &api.ParameterizedJobConfig{Payload: "optional"}
	job.Meta = map[string]string{metaEnv: string(text)}
	return job, nil
}

// runnerJobOf makes the job of one runner.
func (b *Backend) runnerJobOf(r *runnerJob, e execution.Environment) (*api.Job, error) {
	job, err := b.runnerGroup(e)
	if err != nil {
		return nil, err
	}
	job.ID, job.Name = new(r.id), new(r.id)
	note := &api.TaskGroup{
		Name: new(noteGroup), Count: new(0), Meta: map[string]string{metaEnv: e.ID, metaGen: r.generation},
		EphemeralDisk: &api.EphemeralDisk{SizeMB: new(10)},
		Tasks: []*api.Task{{
			Name: noteGroup, Driver: *driverOf(job), Config: job.TaskGroups[0].Tasks[0].Config,
			Resources: &api.Resources{CPU: new(1), MemoryMB: new(10)}, LogConfig: &api.LogConfig{MaxFiles: new(1), MaxFileSizeMB: new(1)},
		}},
	}
	job.TaskGroups = append(job.TaskGroups, note)
	return job, nil
}

// driverOf is the driver of the job's first task. The note's task has the same, so that no other need be on the
// cluster.
func driverOf(job *api.Job) *string { return &job.TaskGroups[0].Tasks[0].Driver }

// runnerGroup makes a batch job with the environment's group in it.
func (b *Backend) runnerGroup(e execution.Environment) (*api.Job, error) {
	own, err := environment.ToJob(e, b.cfg.Environments)
	if err != nil {
		return nil, err
	}
	own.TaskGroups[0].Pool = nil
	own.TaskGroups[0].Count = new(1)
	own.Meta = nil
	job := &api.Job{}
	if err := convert(own, job); err != nil {
		return nil, drover.Errorf(drover.Internal, "making a job for Nomad: %w", err)
	}
	job.Type, job.Region, job.Namespace = new("batch"), nil, new(b.cfg.Namespace)
	g := job.TaskGroups[0]
	g.RestartPolicy = &api.RestartPolicy{Attempts: new(0), Mode: new("fail")}
	g.ReschedulePolicy = &api.ReschedulePolicy{Attempts: new(0), Unlimited: new(false)}
	b.translate(g.Tasks[0], e)
	return job, nil
}

// translate fits the task to Nomad's drivers, which run a command of the image's where ours run none.
func (b *Backend) translate(t *api.Task, e execution.Environment) {
	if e.Driver == "" || e.Driver == "sandbox" {
		t.Driver = b.cfg.Driver
	}
	sleep := map[string]any{"command": "sleep", "args": []string{"infinity"}}
	switch t.Driver {
	case "docker", "podman":
		sleep["image"] = e.Image
		if !e.Network {
			sleep["network_mode"] = "none"
		}
		if ports, ok := t.Config["ports"]; ok {
			sleep["ports"] = ports
		}
		if e.Runtime != "" {
			sleep["runtime"] = e.Runtime
		}
		t.Config, t.User = sleep, "0" // whatever the image's is: executions become theirs by themselves
	case "raw_exec", "exec":
		t.Config = sleep
	case "sandbox": // of a cluster that is Drover's too
		maps.Copy(t.Config, sleep)
		t.User = "root"
	}
}

// readEnvironment is environmentJob's inverse.
func readEnvironment(job *api.Job) (e execution.Environment, ok bool) {
	text, has := job.Meta[metaEnv]
	return e, has && json.Unmarshal([]byte(text), &e) == nil && environment.Validate(e) == nil && *job.ID == envPrefix+e.ID
}

// readRunner is runnerJobOf's inverse.
func readRunner(job *api.Job) (*runnerJob, bool) {
	g := job.LookupTaskGroup(noteGroup)
	if g == nil || g.Meta[metaEnv] == "" {
		return nil, false
	}
	r := &runnerJob{id: *job.ID, env: g.Meta[metaEnv], generation: g.Meta[metaGen], job: job}
	if job.JobModifyIndex != nil {
		r.index = *job.JobModifyIndex
	}
	if text := g.Meta[metaClaim]; text != "" {
		r.claim = &drover.Claim{}
		r.recorded = json.Unmarshal([]byte(text), r.claim) == nil
	}
	return r, true
}
