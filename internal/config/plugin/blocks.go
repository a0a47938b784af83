package plugin

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/drover-project/drover/internal/validation"
)

// GC says what of ended tasks goes away, and when.
type GC struct {
	Image      *bool    `hcl:"image,optional"`       // remove images after their last task; default true
	ImageDelay string   `hcl:"image_delay,optional"` // how long after; duration; default 3m
	Rest       hcl.Body `hcl:",remain" json:"-"`
}

// Volumes allows jobs to mount paths of the machine and docker's volumes.
type Volumes struct {
	Enabled      *bool    `hcl:"enabled,optional"`      // jobs may mount paths of the machine; default false
	SELinuxLabel string   `hcl:"selinuxlabel,optional"` // label of mounts
	Rest         hcl.Body `hcl:",remain" json:"-"`
}

// Auth says where accounts of registries are.
type Auth struct {
	Config string   `hcl:"config,optional"` // a docker config.json; path
	Helper string   `hcl:"helper,optional"` // X is the program docker-credential-X
	Rest   hcl.Body `hcl:",remain" json:"-"`
}

// TLS are the files for a daemon that is reached by tcp.
type TLS struct {
	Cert string   `hcl:"cert,optional"` // client certificate; path
	Key  string   `hcl:"key,optional"`  // its key; path
	CA   string   `hcl:"ca,optional"`   // authority of the daemon's certificate; path
	Rest hcl.Body `hcl:",remain" json:"-"`
}

// ImageGC tells whether images go after their last task, and the delay as it was given.
func (p Config) ImageGC() (on bool, delay string) {
	if p.GC == nil {
		return true, ""
	}
	return p.GC.Image == nil || *p.GC.Image, p.GC.ImageDelay
}

// socketProblem is that of socket_path.
func (p *Block) socketProblem() error {
	at, isPath := strings.CutPrefix(p.Config.Socket(), "unix://")
	if p.Config.SocketPath == "" || isPath && filepath.IsAbs(at) {
		return nil
	}
	return fmt.Errorf("plugin.%s.config.socket_path: must be a path, or unix:// and a path, got %q", p.Name, p.Config.SocketPath)
}

// identityProblems are those of keys about users, namespaces and what reaches outside. They restrict something, so who
// does not read them refuses them.
func (p *Block) identityProblems() (errs []error) {
	c, chroot := p.Config, p.Name == "exec" || p.Name == "java"
	for _, key := range []struct {
		name  string
		given bool
		read  bool
	}{
		{"denied_host_uids", c.DeniedUIDs != "", chroot || p.Name == "raw_exec"},
		{"denied_host_gids", c.DeniedGIDs != "", chroot || p.Name == "raw_exec"},
		{"denied_envvars", len(c.DeniedEnv) > 0, p.Name == "raw_exec"},
		{"image_paths", len(c.ImagePaths) > 0, p.Name == "qemu"},
		{"socket_path", c.SocketPath != "", p.Driver() == "podman"},
		{"args_allowlist", len(c.ArgsAllowList) > 0, p.Name == "qemu"},
		{"no_pivot_root", c.NoPivotRoot != nil, chroot},
		{"default_pid_mode", c.DefaultPIDMode != "", chroot},
		{"default_ipc_mode", c.DefaultIPCMode != "", chroot},
	} {
		if key.given && !key.read {
			errs = append(errs, fmt.Errorf("plugin.%s.config.%s: the driver %s has no such key", p.Name, key.name, p.Name))
		}
	}
	if err := p.socketProblem(); err != nil {
		errs = append(errs, err)
	}
	for _, path := range c.ImagePaths {
		if !filepath.IsAbs(path) {
			errs = append(errs, fmt.Errorf("plugin.%s.config.image_paths: must be absolute paths, got %q", p.Name, path))
		}
	}
	for key, text := range map[string]string{"denied_host_uids": c.DeniedUIDs, "denied_host_gids": c.DeniedGIDs} {
		if _, err := validation.ParseIDs(text); err != nil {
			errs = append(errs, fmt.Errorf("plugin.%s.config.%s: %w", p.Name, key, err))
		}
	}
	if c.NoPivotRoot != nil && *c.NoPivotRoot {
		errs = append(errs, fmt.Errorf("plugin.%s.config.no_pivot_root: cannot be had: a task's root is changed by pivot_root, for which the "+
			"machine's own root must not be a ramdisk", p.Name))
	}
	if mode := c.DefaultPIDMode; mode != "" && mode != "private" {
		errs = append(errs, fmt.Errorf("plugin.%s.config.default_pid_mode: only private can be had, got %q: a task is ended with its process "+
			"namespace", p.Name, mode))
	}
	if mode := c.DefaultIPCMode; mode != "" && mode != "private" && mode != "host" {
		errs = append(errs, fmt.Errorf("plugin.%s.config.default_ipc_mode: must be private or host, got %q", p.Name, mode))
	}
	return errs
}

// Problems are all that is wrong with the block, each with its key.
func (p *Block) Problems() (errs []error) {
	if p.Vendor() == "" && !slices.Contains(drivers, p.Driver()) {
		errs = append(errs, fmt.Errorf("plugin.%s: is not a driver of ours (%s), nor a vendor of devices (nvidia, amd, intel)",
			p.Name, strings.Join(drivers, ", ")))
	}
	if p.Config == nil {
		return errs
	}
	if dir := p.Config.ImageDir; dir != "" && !filepath.IsAbs(dir) {
		errs = append(errs, fmt.Errorf("plugin.%s.config.image_dir: must be an absolute path, got %q", p.Name, dir))
	}
	for key, path := range map[string]string{"tool": p.Config.Tool, "root": p.Config.Root} {
		if path != "" && !filepath.IsAbs(path) {
			errs = append(errs, fmt.Errorf("plugin.%s.config.%s: must be an absolute path, got %q", p.Name, key, path))
		}
	}
	errs = append(errs, p.identityProblems()...)
	_, delay := p.Config.ImageGC()
	for key, text := range map[string]string{
		"gc.image_delay": delay, "pull_activity_timeout": p.Config.PullActivityTimeout, "fingerprint_period": p.Config.FingerprintPeriod,
	} {
		if d, err := time.ParseDuration(text); text != "" && (err != nil || d <= 0) {
			errs = append(errs, fmt.Errorf("plugin.%s.config.%s: %q is no duration such as 10s or 1h", p.Name, key, text)) // a list of problems
		}
	}
	return errs
}
