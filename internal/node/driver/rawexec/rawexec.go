package rawexec

import (
	"context"
	"log/slog"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/supervisor"
	"github.com/drover-project/drover/internal/validation"
)

// Name is the driver's name in a job.
const Name = "raw_exec"

// Config configures the driver.
type Config struct {
	Enabled bool   // off unless enabled: a task has the agent's rights
	Binary  string // drover-init, from supervisor.Binary
	CoreMHz int64  // of one core, for usage in ticks
	Clock   clock.Clock
	Log     *slog.Logger
	// Cgroups, if set, holds every task's processes. The kill and the usage are exact then, and the task's memory and cpu are
	// limited as Nomad limits them. nil: trees are found by descent, and nothing is limited.
	Cgroups *cgroup.Groups
	// IdleDir, if set, keeps supervisors whose task has ended for the next one, with their folders there: on the file
	// system of the tasks' Dirs.State.
	IdleDir string
	// DeniedUIDs and DeniedGIDs are users and groups that no task runs as, DeniedEnv names of variables that no task gets, with * for any
	// characters at either end.
	DeniedUIDs, DeniedGIDs validation.IDs
	DeniedEnv              []string
}

// Driver starts raw processes.
type Driver struct {
	cfg  Config
	pool *supervisor.Pool // nil: supervisors end with their task
}

// New returns the driver. Close it once no task is started any more.
func New(cfg Config) *Driver {
	d := &Driver{cfg: cfg}
	if cfg.IdleDir != "" {
		d.pool = supervisor.NewPool(cfg.IdleDir, cfg.Clock)
	}
	return d
}

// Close ends the supervisors that wait for a task. Those of tasks live on.
func (d *Driver) Close() error {
	if d.pool == nil {
		return nil
	}
	return d.pool.Close()
}

var _ driver.Devicer = (*Driver)(nil)

// Name returns "raw_exec".
func (d *Driver) Name() string { return Name }

// GivesDevices implements driver.Devicer: what a task of the machine's own may use are its variables' to say, and nothing hides the rest.
func (d *Driver) GivesDevices() string { return "" }

// Fingerprint says whether the driver is enabled, in driver.raw_exec.weaker what this machine does not let it limit, and in
// driver.OwnUserDenied whether no task runs as the agent's own user.
func (d *Driver) Fingerprint(context.Context) drover.DriverInfo {
	info := drover.DriverInfo{Detected: d.cfg.Enabled, Healthy: d.cfg.Enabled, UpdateTime: d.cfg.Clock.Now()}
	if !d.cfg.Enabled {
		info.HealthDescription = `disabled: plugin "raw_exec" { config { enabled = true } } enables it`
		return info
	}
	info.Attributes = map[string]string{"driver.raw_exec": "1"}
	info.HealthDescription = "Healthy"
	if _, err := d.lookupUser(""); err != nil {
		info.Attributes[driver.OwnUserDenied] = "1"
	}
	if weaker := strings.Join(d.weaker(), "; "); weaker != "" {
		info.Attributes["driver.raw_exec.weaker"] = weaker
		info.HealthDescription = "Healthy, but weaker than it could be: " + weaker
	}
	return info
}

// weaker lists what is limited less than it could be.
func (d *Driver) weaker() (list []string) {
	if d.cfg.Cgroups == nil {
		return []string{"no cgroups: a task's memory, cpu and number of processes are not limited, only those of an execution " +
			"with limits of its own; processes are found by descent"}
	}
	for _, c := range []struct{ controller, instead string }{
		{"memory", "a task's memory is not limited"},
		{"pids", "the number of a task's processes is not limited"},
		{"cpu", "cpu is not shared by weight"},
	} {
		if why := d.cfg.Cgroups.Info().Lacks(c.controller); why != "" {
			list = append(list, "no "+c.controller+" cgroup controller ("+why+"): "+c.instead)
		}
	}
	return list
}
