package rawexec

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver/options"
)

// taskConfig is Task.Config of this driver.
type taskConfig struct {
	command string
	args    []string
	pids    int64 // at most; 0: as many as the machine has
	workDir string
	oom     int64    // oom_score_adj
	denied  []string // variables that the task does not get
	groups  []string // folders of the machine's own control groups that the task is in, in place of one of ours
}

// maxOOM is the kernel's.
const maxOOM = 1000

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
func parse(config map[string]any) (taskConfig, error) {
	r := options.New(config)
	c := read(r)
	return c, r.Done()
}

// Keys are those of a task's configuration.
func Keys() []string { return options.Keys(func(r *options.Reader) { read(r) }) }

func read(r *options.Reader) (c taskConfig) {
	c = taskConfig{
		command: r.Str("command"), args: r.Strs("args"), pids: r.Num("pids_limit", 1, maxPids), workDir: r.Str("work_dir"),
		oom: r.Num("oom_score_adj", 0, maxOOM), denied: r.Strs("denied_envvars"),
	}
	if !options.Absolute(c.workDir) {
		r.Problem("work_dir: %q is not an absolute path", c.workDir)
	}
	overrides(&c, r)
	if c.pids > 0 && len(c.groups) > 0 {
		r.Problem("pids_limit: the task is in a control group of the machine's, which has the limits that it has")
	}
	return c
}

// cgroupRoot is where control groups are.
const cgroupRoot = "/sys/fs/cgroup"

// overrides reads the control groups of the machine's own that the task is to be in.
func overrides(c *taskConfig, r *options.Reader) {
	v1, v2 := r.Dict("cgroup_v1_override"), r.Str("cgroup_v2_override")
	if len(v1) > 0 && v2 != "" {
		r.Problem("cgroup_v2_override: the task cannot be in groups of both versions: give one")
	}
	add := func(key, hierarchy, path string) {
		rel := strings.TrimPrefix(strings.TrimPrefix(filepath.Clean(path), hierarchy), "/")
		if path == "" || !filepath.IsLocal(rel) {
			r.Problem("%s: %q is no control group below %s", key, path, hierarchy)
			return
		}
		c.groups = append(c.groups, filepath.Join(hierarchy, rel))
	}
	for _, controller := range slices.Sorted(maps.Keys(v1)) {
		if controller == "" || strings.ContainsAny(controller, "/.") {
			r.Problem("cgroup_v1_override: %q is no controller", controller)
			continue
		}
		add("cgroup_v1_override", filepath.Join(cgroupRoot, controller), v1[controller])
	}
	if v2 != "" {
		add("cgroup_v2_override", cgroupRoot, v2)
	}
}
