package qemu

import (
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver/options"
)

// taskConfig is Task.Config of this driver.
type taskConfig struct {
	image      string
	accel      string
	machine    string
	drive      string
	graceful   bool
	guestAgent bool
	args       []string
	ports      map[string]int // guest's port by label
}

var (
	accelerators = []string{"tcg", "kvm"}
	interfaces   = []string{"ide", "scsi", "sd", "mtd", "floppy", "pflash", "virtio", "none"}
)

// parse reads the configuration. Errors: Invalid with all problems.
func (d *Driver) parse(config map[string]any) (taskConfig, error) {
	r := options.New(config)
	c := d.read(r)
	return c, r.Done()
}

// Keys are those of a task's configuration.
func Keys() []string {
	d := &Driver{}
	return options.Keys(func(r *options.Reader) { d.read(r) })
}

func (d *Driver) read(r *options.Reader) (c taskConfig) {
	c = taskConfig{
		image: r.Str("image_path"), accel: r.Str("accelerator"), drive: r.Str("drive_interface"), graceful: r.Flag("graceful_shutdown"),
		guestAgent: r.Flag("guest_agent"), args: r.Strs("args"), ports: map[string]int{},
	}
	if c.machine = r.Str("machine_type"); c.machine == "" {
		c.machine = "pc"
	}
	if strings.ContainsAny(c.machine, ",= ") {
		r.Problem("machine_type: %q is no name of a machine of qemu's", c.machine)
	}
	if name := r.Str("emulator"); name != "" && strings.TrimPrefix(name, "qemu-system-") != "x86_64" {
		r.Problem("emulator: %q is not possible: this driver's machines are x86_64's", name)
	}
	if c.image == "" {
		r.Problem("image_path: a qemu task needs the path of an image")
	}
	oneOf := func(key string, value *string, all []string) {
		if *value == "" {
			*value = all[0]
		}
		if !slices.Contains(all, *value) && !strings.Contains(*value, "${") {
			r.Problem("%s: %q is none of %s", key, *value, strings.Join(all, ", "))
		}
	}
	oneOf("accelerator", &c.accel, accelerators)
	oneOf("drive_interface", &c.drive, interfaces)
	ports := r.Dict("port_map")
	for _, label := range slices.Sorted(maps.Keys(ports)) {
		n, err := strconv.Atoi(ports[label])
		if (err != nil || n < 1 || n > 65535) && !strings.Contains(ports[label], "${") {
			r.Problem("port_map: %q of %q is no port", ports[label], label)
		}
		c.ports[label] = n
	}
	for _, arg := range c.args {
		if why := d.refused(arg); why != "" {
			r.Problem("args: %s", why)
		}
	}
	return c
}

// refused says why an argument is not passed on, "" if it is. Options are looked at in the form that qemu itself reads: with one
// dash or two.
func (d *Driver) refused(arg string) string {
	if !strings.HasPrefix(strings.TrimSpace(arg), "-") {
		return ""
	}
	option, _, _ := strings.Cut("-"+strings.TrimLeft(strings.TrimSpace(arg), "-"), "=")
	if option == "-daemonize" {
		return strconv.Quote(arg) + " cannot be had: qemu would leave the task, which ends with its process"
	}
	if len(d.cfg.AllowArgs) == 0 || slices.ContainsFunc(d.cfg.AllowArgs, func(a string) bool { return a == arg || a == option }) {
		return ""
	}
	return strconv.Quote(arg) + " is not among the options that this node allows (args_allowlist of plugin \"qemu\")"
}

// imagePath is where the machine's image lies in the sandbox, and on the machine if it is none of the allocation's. inside replaces
// the machine's paths of the allocation. Errors: Invalid, Forbidden.
func (d *Driver) imagePath(name string, inside *strings.Replacer) (at, outside string, err error) {
	name = inside.Replace(name)
	if !filepath.IsAbs(name) {
		if !filepath.IsLocal(name) {
			return "", "", drover.Errorf(drover.Invalid, "image_path: %q leads out of the task's folder", name)
		}
		return path.Join("/", name), "", nil
	}
	for _, own := range []string{"/local/", "/alloc/", "/secrets/"} {
		if at := path.Clean(name); strings.HasPrefix(at, own) {
			return at, "", nil
		}
	}
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return "", "", drover.Errorf(drover.Invalid, "image_path: %w", err)
	}
	for _, dir := range d.cfg.ImagePaths {
		if allowed, err := filepath.EvalSymlinks(dir); err == nil && strings.HasPrefix(real, strings.TrimSuffix(allowed, "/")+"/") {
			return real, real, nil
		}
	}
	return "", "", drover.Errorf(drover.Forbidden, "image_path: %q is neither in the allocation's folder nor below a folder that this node "+
		"allows (image_paths of plugin \"qemu\")", name)
}
