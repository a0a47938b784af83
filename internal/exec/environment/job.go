package environment

import (
	"cmp"
	"encoding/json"
	"strconv"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/network"
)

// Options are the deployment's, not the environment's.
type Options struct {
	// NetworkMode of environments that have network access: "bridge" (default) or "host".
	NetworkMode string
	Datacenters []string // default: all
	Region      string   // of the agent, which tasks are told; default: drover.DefaultRegion
}

// ToJob returns the job that keeps the environment's runners. The environment must be valid. Pool size and bound
// stand in the group's Pool alone, so that changing them replaces no runner.
func ToJob(env execution.Environment, opts Options) (*drover.Job, error) {
	env = Canonicalize(env)
	meta, err := packMeta(env)
	if err != nil {
		return nil, err
	}
	datacenters := opts.Datacenters
	if len(datacenters) == 0 {
		datacenters = []string{"*"}
	}
	at := JobOf(env.Key())
	job := &drover.Job{
		Region:      cmp.Or(opts.Region, drover.DefaultRegion),
		Namespace:   at.Namespace,
		ID:          at.ID,
		Name:        at.ID,
		Type:        drover.JobTypeService,
		Priority:    drover.DefaultPriority,
		Datacenters: datacenters,
		Constraints: env.Constraints,
		Meta:        map[string]string{metaKey: meta},
		TaskGroups:  []*drover.TaskGroup{group(env, opts)},
	}
	return job, nil
}

// minDiskMB is the smallest that a job may reserve; the runner's own bound may be smaller.
const minDiskMB = 10

// group is the one group of the job. A runner that ended is never restarted in place: its files are somebody's.
// Replacing it is the pool's matter.
func group(env execution.Environment, opts Options) *drover.TaskGroup {
	return &drover.TaskGroup{
		Name:          GroupName,
		Count:         new(env.PoolSize),
		Pool:          &drover.WarmPool{Size: env.PoolSize, MaxRunners: env.MaxRunners},
		Tasks:         []*drover.Task{task(env, opts)},
		Networks:      networks(env, opts),
		EphemeralDisk: &drover.EphemeralDisk{SizeMB: max(env.DiskMB, minDiskMB)},
		RestartPolicy: &drover.RestartPolicy{
			Attempts: new(0), Interval: new(time.Hour), Delay: new(time.Second), Mode: "fail",
		},
		// A passing fault must not leave the pool empty for long, one that stays must not keep the node busy.
		ReschedulePolicy: &drover.ReschedulePolicy{
			Unlimited: new(true), Delay: new(5 * time.Second), MaxDelay: new(time.Minute), DelayFunction: "exponential",
		},
	}
}

// task describes a runner without a command, which Drover's drivers keep empty. It is killed without a grace,
// because nothing in it needs to be shut down.
func task(env execution.Environment, opts Options) *drover.Task {
	return &drover.Task{
		Name:        TaskName,
		Driver:      env.Driver,
		Config:      driverConfig(env, opts),
		KillTimeout: new(time.Duration(0)),
		KillSignal:  "SIGKILL",
		Resources:   &drover.Resources{CPU: env.CPU, MemoryMB: env.MemoryMB, MemoryMaxMB: env.MemoryMaxMB},
		LogConfig:   &drover.LogConfig{MaxFiles: 1, MaxFileSizeMB: 1},
	}
}

// driverConfig holds only what the driver must know before it starts a runner; the rest is bound to executions.
func driverConfig(env execution.Environment, opts Options) map[string]any {
	config := map[string]any{}
	switch env.Driver {
	case "raw_exec":
		config["pids_limit"] = env.PidsLimit
	case "sandbox":
		config["image"] = env.Image
		config["pids_limit"] = env.PidsLimit
		config["disk_mb"] = env.DiskMB
		config["network_mode"] = networkMode(env, opts)
	case "docker", "podman":
		config["image"] = env.Image
		config["pids_limit"] = env.PidsLimit
		if !env.Network {
			config["network_mode"] = "none"
		} else if len(env.ExposedPorts) > 0 {
			config["ports"] = labels(env)
		}
		if env.Runtime != "" {
			config["runtime"] = env.Runtime
		}
	}
	return config
}

// networkMode is the mode of the group's network; "none" without network access.
func networkMode(env execution.Environment, opts Options) string {
	switch {
	case !env.Network:
		return "none"
	case hasContainers(env):
		return "host" // of the group; the driver publishes the ports of the runners' bridge
	case opts.NetworkMode != "":
		return opts.NetworkMode
	}
	return "bridge"
}

// hasContainers reports whether runners are containers of docker or podman.
func hasContainers(env execution.Environment) bool {
	return env.Driver == "docker" || env.Driver == "podman"
}

// labels are the ports' labels as the docker driver wants them in its configuration: a list of any type.
func labels(env execution.Environment) (list []any) {
	for _, p := range env.ExposedPorts {
		list = append(list, strconv.Itoa(int(p)))
	}
	return list
}

// Address corrects where a runner's port is reached: without a bridge in between, a program's port is the machine's.
func Address(env execution.Environment, alloc *drover.Allocation, p network.PortMapping) network.PortMapping {
	bridged := hasContainers(env)
	if alloc.Job != nil && len(alloc.Job.TaskGroups) == 1 && len(alloc.Job.TaskGroups[0].Networks) > 0 {
		bridged = bridged || alloc.Job.TaskGroups[0].Networks[0].Mode != "host"
	}
	if !bridged && p.To > 0 {
		p.Value = p.To
	}
	return p
}

// networks asks for one dynamic port for each exposed one, with the exposed port's number as its label. Without
// network access there are none: then the ports are only remembered.
func networks(env execution.Environment, opts Options) []*network.Resource {
	if !env.Network {
		return nil
	}
	n := &network.Resource{Mode: networkMode(env, opts)}
	for _, p := range env.ExposedPorts {
		n.DynamicPorts = append(n.DynamicPorts, network.Port{Label: strconv.Itoa(int(p)), To: int(p)})
	}
	return []*network.Resource{n}
}

// packMeta renders the environment without its namespace, and without what stands in the group's pool and in the job's constraints.
func packMeta(env execution.Environment) (string, error) {
	env.Namespace, env.PoolSize, env.MaxRunners, env.Constraints = "", 0, 0, nil
	packed, err := json.Marshal(env) // maps in sorted order: equal environments give equal jobs
	if err != nil {
		return "", drover.Errorf(drover.Internal, "packing environment %s: %w", env.ID, err)
	}
	return string(packed), nil
}

// FromJob is ToJob's inverse. What can be changed in the job by other means (scaling it, say) is read from there.
// Errors: NotFound if it is not an environment's job.
func FromJob(job *drover.Job) (execution.Environment, error) {
	var env execution.Environment
	key, ok := KeyOf(job.Key())
	packed, has := job.Meta[metaKey]
	if !ok || !has || len(job.TaskGroups) != 1 || job.TaskGroups[0].Pool == nil {
		return env, drover.Errorf(drover.NotFound, "job %q is not an environment", job.ID)
	}
	if err := json.Unmarshal([]byte(packed), &env); err != nil {
		return env, drover.Errorf(drover.NotFound, "job %q is not an environment: reading its meta: %w", job.ID, err)
	}
	g := job.TaskGroups[0]
	env.Namespace, env.ID = execution.SplitKey(key)
	env.PoolSize, env.MaxRunners = g.Pool.Size, g.Pool.MaxRunners
	env.Constraints = job.Constraints
	if len(g.Tasks) == 1 && g.Tasks[0].Resources != nil {
		r := g.Tasks[0].Resources
		env.CPU, env.MemoryMB, env.MemoryMaxMB = r.CPU, r.MemoryMB, r.MemoryMaxMB
	}
	return env, nil
}
