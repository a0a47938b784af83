package rawexec

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver/options"
)

// taskConfig is Task.Config of this driver.
type taskConfig struct {
	command string
	args    []string
	pids    int64 // at most; 0: as many as the machine has
}

const maxPids = 1 << 22 // the kernel's

// Validate checks Task.Config: all problems at once, each naming its key; and that the task mounts nothing. Errors: Invalid.
func (d *Driver) Validate(task *drover.Task) error {
	c, err := parse(task.Config)
	if err != nil {
		return err
	}
	if c.command == "" {
		return errNoCommand()
	}
	if len(task.VolumeMounts) > 0 {
		return errNoMounts()
	}
	return nil
}

// errNoMounts is for Validate and for a start: the program would write beside the volume without a word.
func errNoMounts() error {
	return drover.Errorf(drover.Invalid, "volume_mount: the driver raw_exec mounts no volumes, as its tasks see the machine's files: "+
		"take the driver sandbox or docker, or the volume's path on the machine")
}

// errNoCommand is for Validate and for a start that is no warm runner's; a runner may do without a command.
func errNoCommand() error {
	return drover.Errorf(drover.Invalid, "command: a raw_exec task needs the path of a program")
}

// parse reads the configuration. Errors: Invalid with all problems.
func parse(config map[string]any) (c taskConfig, err error) {
	r := options.New(config)
	c = taskConfig{command: r.Str("command"), args: r.Strs("args"), pids: r.Num("pids_limit", 1, maxPids)}
	return c, r.Done()
}
