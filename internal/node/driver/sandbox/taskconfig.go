package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"drover"
)

// taskConfig is Task.Config of this driver.
type taskConfig struct {
	image      string
	command    string
	args       []string
	entrypoint []string
	hasEntry   bool
	workDir    string
	hostname   string
	network    string // none, host, bridge; "" = as the group says
	ports      []string
	hasPorts   bool
	pids       int64
	cpuHard    bool
	diskMB     int64
	readOnly   bool
	mounts     []mountConfig
	capAdd     []string
	username   string // to the registry
	password   string
	pull       bool
	capDrop    []string
}

type mountConfig struct {
	source, target string
	readOnly       bool
}

const (
	defaultPids   = 256
	defaultDiskMB = 300
	maxDiskMB     = 1 << 20
	maxPids       = 1 << 20
)

// Validate checks Task.Config; all problems at once, each naming its key.
func (d *Driver) Validate(task *drover.Task) error {
	_, err := d.parse(task.Config)
	return err
}

// parse reads the configuration. Errors: Invalid with all problems.
func (d *Driver) parse(config map[string]any) (taskConfig, error) {
	r := &reader{config: config, seen: map[string]bool{}}
	c := taskConfig{
		image: r.str("image"), command: r.str("command"), args: r.strs("args"), workDir: r.str("work_dir"),
		hostname: r.str("hostname"), network: r.str("network_mode"), pids: r.num("pids_limit", 1, maxPids),
		cpuHard: r.flag("cpu_hard_limit"), diskMB: r.num("disk_mb", 1, maxDiskMB), readOnly: r.flag("readonly_rootfs"),
		capAdd: r.strs("cap_add"), capDrop: r.strs("cap_drop"), pull: r.flag("force_pull"),
	}
	c.username, c.password = r.auth("auth")
	c.entrypoint, c.hasEntry = r.strs("entrypoint"), config["entrypoint"] != nil
	c.ports, c.hasPorts = r.strs("ports"), config["ports"] != nil
	c.mounts = r.mounts("mounts")
	if r.flag("privileged") {
		r.problem("privileged: the sandbox driver has no privileged mode; use raw_exec or docker")
	}
	d.check(&c, r)
	r.unknown()
	if len(r.problems) > 0 {
		return c, drover.Errorf(drover.Invalid, "%w", errors.Join(r.problems...))
	}
	return c, nil
}

func (d *Driver) check(c *taskConfig, r *reader) {
	if c.image == "" {
		c.image = "host"
	}
	if c.pids == 0 {
		c.pids = defaultPids
	}
	switch c.network {
	case "", networkNone, networkHost, networkBridge:
	default:
		r.problem("network_mode: %q is none of none, host, bridge", c.network)
	}
	if c.workDir != "" && !strings.HasPrefix(c.workDir, "/") {
		r.problem("work_dir: %q is not an absolute path", c.workDir)
	}
	if len(c.hostname) > 63 {
		r.problem("hostname: longer than 63 characters")
	}
	for _, m := range c.mounts {
		if !strings.HasPrefix(m.target, "/") || m.target == "/" {
			r.problem("mounts: target %q is not an absolute path below /", m.target)
		}
		if m.source == "" {
			r.problem("mounts: the mount at %q has no source", m.target)
		}
		if strings.HasPrefix(m.source, "/") && !d.cfg.AllowHostMounts {
			r.problem("mounts: source %q is outside the allocation, which this node does not allow (allow_host_mounts)", m.source)
		}
	}
	if _, err := d.caps(*c); err != nil {
		r.problems = append(r.problems, err)
	}
}

// reader takes typed values out of a map as JSON or HCL made it.
type reader struct {
	config   map[string]any
	seen     map[string]bool
	problems []error
}

func (r *reader) problem(format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf(format, args...)) //nolint:err113 // a list of problems
}

func (r *reader) value(key string) any {
	r.seen[key] = true
	return r.config[key]
}

func (r *reader) str(key string) string {
	switch v := r.value(key).(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		r.problem("%s: must be a string, not %T", key, v)
		return ""
	}
}

func (r *reader) flag(key string) bool {
	switch v := r.value(key).(type) {
	case nil:
		return false
	case bool:
		return v
	case string: // as interpolation leaves it
		if v == "true" || v == "false" {
			return v == "true"
		}
	}
	r.problem("%s: must be true or false", key)
	return false
}

func (r *reader) num(key string, low, high int64) int64 {
	var n int64
	switch v := r.value(key).(type) {
	case nil:
		return 0
	case int:
		n = int64(v)
	case int64:
		n = v
	case float64:
		if v != math.Trunc(v) || math.Abs(v) > 1e15 {
			r.problem("%s: must be a whole number", key)
			return 0
		}
		n = int64(v)
	default:
		r.problem("%s: must be a number, not %T", key, v)
		return 0
	}
	if n < low || n > high {
		r.problem("%s: %d is not between %d and %d", key, n, low, high)
		return 0
	}
	return n
}

func (r *reader) strs(key string) []string {
	switch v := r.value(key).(type) {
	case nil:
		return nil
	case []string:
		return v
	case []any:
		out := make([]string, 0, len(v))
		for _, e := range v {
			s, ok := e.(string)
			if !ok {
				r.problem("%s: all elements must be strings, one is %T", key, e)
				return nil
			}
			out = append(out, s)
		}
		return out
	default:
		r.problem("%s: must be a list of strings, not %T", key, v)
		return nil
	}
}

// mounts reads a list of {source, target, readonly}.
func (r *reader) mounts(key string) []mountConfig {
	list, err := asMaps(r.value(key))
	if err != nil {
		r.problem("%s: %w", key, err)
	}
	var out []mountConfig
	for _, m := range list {
		in := &reader{config: m, seen: map[string]bool{}}
		out = append(out, mountConfig{source: in.str("source"), target: in.str("target"), readOnly: in.flag("readonly")})
		in.unknown()
		for _, p := range in.problems {
			r.problem("%s: %w", key, p)
		}
	}
	return out
}

// auth reads one {username, password}.
func (r *reader) auth(key string) (username, password string) {
	list, err := asMaps(r.value(key))
	if err != nil || len(list) > 1 {
		r.problem("%s: must be one block with username and password", key)
		return "", ""
	}
	for _, m := range list {
		in := &reader{config: m, seen: map[string]bool{}}
		username, password = in.str("username"), in.str("password")
		in.unknown()
		for _, p := range in.problems {
			r.problem("%s: %w", key, p)
		}
	}
	return username, password
}

func asMaps(v any) ([]map[string]any, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return []map[string]any{v}, nil
	case []map[string]any:
		return v, nil
	case []any:
		var out []map[string]any
		for _, e := range v {
			m, ok := e.(map[string]any)
			if !ok {
				return nil, fmt.Errorf("all elements must be blocks, one is %T", e) //nolint:err113 // shown to people
			}
			out = append(out, m)
		}
		return out, nil
	}
	return nil, fmt.Errorf("must be a list of blocks, not %T", v) //nolint:err113 // shown to people
}

func (r *reader) unknown() {
	for _, key := range slices.Sorted(maps.Keys(r.config)) {
		if !r.seen[key] {
			known := slices.Sorted(maps.Keys(r.seen))
			r.problem("unknown key %q; known are %s", key, strings.Join(known, ", "))
		}
	}
}
