package sandbox

import (
	"context"
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/image"
)

// Fingerprint says what this machine can do, and in driver.sandbox.weaker what it cannot.
func (d *Driver) Fingerprint(ctx context.Context) drover.DriverInfo {
	info := drover.DriverInfo{UpdateTime: d.cfg.Clock.Now(), Attributes: map[string]string{}}
	if missing := d.missing(); len(missing) > 0 {
		info.HealthDescription = "not usable here: " + strings.Join(missing, "; ")
		info.Attributes["driver.sandbox.missing"] = strings.Join(missing, "; ")
		return info
	}
	if _, err := d.cfg.Images.Prepare(ctx, image.Request{Ref: image.Host}); err != nil { // also so that no start has to wait
		info.HealthDescription = "the host image cannot be made: " + err.Error()
		return info
	}
	info.Detected, info.Healthy, info.HealthDescription = true, true, "Healthy"
	weaker := d.weaker()
	set := func(key, value string) { info.Attributes["driver.sandbox"+key] = value }
	set("", "1")
	set(".cgroups", d.cgroupVersion())
	set(".rootless", yes(d.rootless))
	set(".network.none", "true")
	why := d.bridgeMissing()
	set(".network.bridge", yes(why == ""))
	set(".network.host", yes(d.cfg.AllowHostNetwork || why == "")) // of a group, whose ports the bridge does as well
	set(".allow_host_network", yes(d.cfg.AllowHostNetwork))
	if why != "" { // placements that fail for it say why
		set(".network.bridge.missing", why)
		set(".network.host.missing", "it "+hostLeave+", and mode bridge cannot be had: "+why)
	}
	if len(weaker) > 0 {
		set(".weaker", strings.Join(weaker, "; "))
		info.HealthDescription = "Healthy, but weaker than it could be: " + strings.Join(weaker, "; ")
	}
	return info
}

// cgroupVersion is "v1", "v2" or what cgroup says for none: an attribute that jobs can constrain.
func (d *Driver) cgroupVersion() string {
	if d.cfg.Cgroups == nil {
		return cgroup.None.String()
	}
	return d.cfg.Cgroups.Info().Version.String()
}

// controls reports whether tasks have control groups with this controller.
func (d *Driver) controls(controller string) bool {
	return d.cfg.Cgroups != nil && d.cfg.Cgroups.Info().Has(controller)
}

// missing lists what the driver cannot do without.
func (d *Driver) missing() []string {
	var missing []string
	if !Overlay() {
		missing = append(missing, "the kernel has no overlay file system (modprobe overlay)")
	}
	if n, err := os.ReadFile("/proc/sys/user/max_user_namespaces"); err != nil || strings.TrimSpace(string(n)) == "0" {
		missing = append(missing, "user namespaces are off (sysctl user.max_user_namespaces)")
	}
	if v, err := os.ReadFile("/proc/sys/kernel/unprivileged_userns_clone"); err == nil && d.rootless && strings.TrimSpace(string(v)) == "0" {
		missing = append(missing, "only root may make user namespaces (sysctl kernel.unprivileged_userns_clone)")
	}
	if _, err := os.Stat("/proc/sys/kernel/seccomp/actions_avail"); err != nil {
		missing = append(missing, "the kernel has no seccomp filters")
	}
	// The descriptor is wrong on purpose: only a kernel without the call answers ENOSYS.
	if err := unix.MountSetattr(-1, "", unix.AT_EMPTY_PATH, &unix.MountAttr{}); errors.Is(err, unix.ENOSYS) {
		missing = append(missing, "the kernel is older than 5.12 (no mount_setattr)")
	}
	if v, err := os.ReadFile("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"); err == nil && d.rootless &&
		strings.TrimSpace(string(v)) == "1" {
		missing = append(missing, "AppArmor lets only root make user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns)")
	}
	if _, err := os.Stat(d.cfg.Binary); err != nil {
		missing = append(missing, "drover-init is missing: "+err.Error())
	}
	if len(missing) == 0 {
		if err := namespaces(d.cfg.Binary); err != nil {
			missing = append(missing, err.Error())
		}
	}
	return missing
}

// weaker lists what protects less than it could.
func (d *Driver) weaker() []string {
	var weaker []string
	if d.rootless {
		weaker = append(weaker, "the agent is not root: sandboxes have one user only, files show foreign owners as nobody")
	}
	if why := d.bridgeMissing(); why != "" {
		weaker = append(weaker, "no network_mode bridge: "+why)
	} else if why := d.bridge.Weaker(); why != "" {
		weaker = append(weaker, why)
	}
	switch d.cfg.Cgroups {
	case nil:
		weaker = append(weaker, "no cgroups: memory is limited for each process, not together; cpu is not limited; usage is not measured")
	default:
		weaker = append(weaker, d.cfg.Cgroups.Info().Weaker()...)
	}
	if d.rootless && !remembers() {
		weaker = append(weaker, "kernels before 6.6 do not let a user's sandbox remove directories of its image")
	}
	if d.plainMounts.Load() {
		weaker = append(weaker, "the kernel does not shift owners of mounts: images show nobody as owner and cannot be changed")
	}
	return weaker
}

// yes is how Nomad's attributes spell a truth value.
func yes(v bool) string {
	if v {
		return "true"
	}
	return "false"
}

// FingerprintAs is the beginning of the fingerprint of another driver, which runs its tasks in sandboxes with root's rights and
// with a network. It is healthy and has the attributes that tell of sandboxes, under its name, or says what is missing. unfit
// makes one that says why it cannot be used here.
func (d *Driver) FingerprintAs(
	ctx context.Context, name string, hostNetwork bool,
) (info drover.DriverInfo, unfit func(why string) drover.DriverInfo) {
	info = d.Fingerprint(ctx)
	inherited := info.Attributes
	info.Attributes = map[string]string{}
	unfit = func(why string) drover.DriverInfo {
		return drover.DriverInfo{UpdateTime: info.UpdateTime, Attributes: map[string]string{}, HealthDescription: "not usable here: " + why}
	}
	why := inherited["driver.sandbox.network.bridge.missing"]
	switch {
	case !info.Healthy:
	case inherited["driver.sandbox.rootless"] == "true":
		info = unfit("tasks run as users of their own, for which the agent must be root; the driver sandbox does without")
	case why != "" && !hostNetwork:
		info = unfit("tasks have a network, which " + HostLeave(name) + ", and mode bridge cannot be had: " + why)
	default:
		prefix := "driver." + name
		info.Attributes[prefix] = "1"
		info.Attributes[prefix+".network.host"] = "true" // by leave, or on the bridge
		for _, key := range []string{".weaker", ".cgroups", ".network.bridge", ".network.bridge.missing"} {
			if v, ok := inherited["driver.sandbox"+key]; ok {
				info.Attributes[prefix+key] = v
			}
		}
	}
	return info, unfit
}
