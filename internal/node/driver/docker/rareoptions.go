package docker

import (
	"regexp"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"

	"github.com/drover-project/drover/internal/node/driver/options"
)

// readRare reads the rarer options. Those of Nomad that have no meaning here are refused with the reason, unless their value
// asks for what holds here without them.
func readRare(r *options.Reader, c *taskConfig) {
	c.utsMode, c.cgroupns, c.mac = r.Str("uts_mode"), r.Str("cgroupns"), r.Str("mac_address")
	c.ipv4, c.ipv6, c.storage = r.Str("ipv4_address"), r.Str("ipv6_address"), r.Dict("storage_opt")
	c.tty, c.input = r.Flag("tty"), r.Flag("interactive")
	c.groups, c.volumeDriver = r.Strs("group_add"), r.Str("volume_driver")
	c.image.AccountOptional = r.Flag("auth_soft_fail")
	for _, key := range []string{"ipv4_address", "ipv6_address"} {
		if a := r.Str(key); a != "" {
			if _, err := parseAddr(a); err != nil {
				r.Problem("%s: %w", key, err)
			}
		}
	}
	readPullTimeout(r, c)
	r.Each("devices", func(in *options.Reader) {
		m := container.DeviceMapping{
			PathOnHost:        in.Str("host_path"),
			PathInContainer:   in.Str("container_path"),
			CgroupPermissions: in.Str("cgroup_permissions"),
		}
		if m.PathInContainer == "" {
			m.PathInContainer = m.PathOnHost
		}
		if m.CgroupPermissions == "" {
			m.CgroupPermissions = "rwm"
		}
		c.devices = append(c.devices, m)
	})
	if c.cpus = r.Str("cpuset_cpus"); c.cpus != "" && !cpuList.MatchString(c.cpus) && !strings.Contains(c.cpus, "${") {
		r.Problem("cpuset_cpus: %q is no list of processors such as 0-3,5", c.cpus)
	}
	refuse(r)
}

// readPullTimeout reads how long a pull may take.
func readPullTimeout(r *options.Reader, c *taskConfig) {
	if text := r.Str("image_pull_timeout"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			r.Problem("image_pull_timeout: %q is no duration such as 5m", text)
		}
		c.image.PullTimeout = d
	}
}

// cpuList is a list of processors.
var cpuList = regexp.MustCompile(`^\d+(-\d+)?(,\d+(-\d+)?)*$`)

// Refused are the keys of Nomad's driver that cannot be kept, each with the reason; only values that change nothing are accepted.
var Refused = map[string]string{ // a constant
	"advertise_ipv6_address": "ports are advertised with the node's address",
	"oom_score_adj":          "the supervisor's programs have 0",
	"isolation":              "containers of this node have one kind of it; runtime names others",
}

// refusal notes one of them.
func refusal(r *options.Reader, given bool, key string, reasons map[string]string) {
	if given {
		r.Problem("%s: is not possible: %s", key, reasons[key])
	}
}

// refuse reads those keys, and what has no effect: package unheeded warns of that.
func refuse(r *options.Reader) {
	r.Num("container_exists_attempts", 0, maxPids) // a name that is taken is waited for, however long that is
	refusal(r, r.Flag("advertise_ipv6_address"), "advertise_ipv6_address", Refused)
	r.Each("healthchecks", func(in *options.Reader) { in.Flag("disable") }) // they are disabled: docker would exec them
	r.Each("logging", func(in *options.Reader) {
		in.Dict("config")
		in.Dict("options")
		driver := in.Str("type")
		if driver == "" {
			driver = in.Str("driver")
		}
		switch driver {
		case "", "none", "local", "json-file":
		default:
			r.Problem("logging: %s is not possible: the supervisor writes the task's logs itself, into the allocation", driver)
		}
	})
	refusal(r, r.Num("oom_score_adj", -1000, 1000) != 0, "oom_score_adj", Refused)
	refusal(r, r.Str("isolation") != "", "isolation", Refused)
}
