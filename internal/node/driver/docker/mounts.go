package docker

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/moby/moby/api/types/mount"

	"drover"
	"drover/internal/node/driver"
	"drover/internal/node/driver/options"
	"drover/internal/node/driver/supervised"
)

// ownPath holds drover-init and the folder that it is handed its socket through.
const ownPath = "/.drover"

func (d *Driver) checkMounts(c *taskConfig, r *options.Reader) {
	for i := range c.mounts {
		m := &c.mounts[i]
		if !path.IsAbs(m.target) || path.Clean(m.target) == "/" {
			r.Problem("mounts: target %q is not an absolute path below /", m.target)
		}
		switch m.kind {
		case "bind":
			d.checkSource("mounts", m.source, r)
		case "volume":
			if strings.ContainsAny(m.source, "/\\") {
				r.Problem("mounts: %q is not the name of a volume", m.source)
			}
			if !d.cfg.AllowVolumes {
				r.Problem("mounts: this node does not allow docker volumes (plugin \"docker\" { config { volumes { enabled = true } } })")
			}
		case "tmpfs":
			if m.source != "" {
				r.Problem("mounts: a tmpfs has no source")
			}
		default:
			r.Problem("mounts: type %q is none of bind, volume, tmpfs", m.kind)
		}
	}
	for _, v := range c.volumes {
		parts := strings.Split(v, ":")
		if len(parts) < 2 || len(parts) > 3 || !path.IsAbs(parts[1]) {
			r.Problem("volumes: %q is not host:container or host:container:options", v)
			continue
		}
		d.checkSource("volumes", parts[0], r)
	}
	for _, t := range c.tmpfs {
		if target, _, _ := strings.Cut(t, ":"); !path.IsAbs(target) {
			r.Problem("tmpfs: %q is not an absolute path", t)
		}
	}
}

func (d *Driver) checkSource(key, source string, r *options.Reader) {
	switch {
	case source == "":
		r.Problem("%s: a mount has no source", key)
	case path.IsAbs(source):
		if !d.cfg.AllowVolumes {
			r.Problem("%s: source %q is outside the allocation, which this node does not allow (plugin \"docker\" { config { volumes { enabled = true } } })", key, source)
		}
	case !filepath.IsLocal(source):
		r.Problem("%s: source %q leaves the task's folder", key, source)
	}
}

// mounts of the container.
func (d *Driver) mounts(spec *driver.Spec, c taskConfig, init first) ([]mount.Mount, error) {
	bind := func(source, target string, readOnly bool) mount.Mount {
		return mount.Mount{Type: mount.TypeBind, Source: source, Target: target, ReadOnly: readOnly}
	}
	list := []mount.Mount{bind(d.cfg.Binary, ownPath+"/init", true)}
	if init.source != "" {
		list = append(list, bind(init.source, init.target, !init.writable))
	}
	for _, m := range [][2]string{{spec.Dirs.Shared, supervised.AllocPath}, {spec.Dirs.Local, supervised.LocalPath}, {spec.Dirs.Secrets, supervised.SecretsPath}} {
		if m[0] != "" {
			list = append(list, bind(m[0], m[1], false))
		}
	}
	for _, m := range spec.Mounts {
		list = append(list, bind(m.Source, m.Target, m.ReadOnly))
	}
	for _, m := range c.mounts {
		one, err := m.mount(spec)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// binds are the volumes as docker has them: a folder of the machine that is not there is made.
func (d *Driver) binds(spec *driver.Spec, c taskConfig) ([]string, error) {
	var out []string
	for _, v := range c.volumes {
		parts := append(strings.Split(v, ":"), "")
		if err := makeSource(spec, parts[0]); err != nil {
			return nil, err
		}
		source, err := inside(spec, parts[0])
		if err != nil {
			return nil, err
		}
		set := strings.Trim(parts[2]+","+d.cfg.SELinux, ",")
		out = append(out, strings.TrimSuffix(source+":"+parts[1]+":"+set, ":"))
	}
	return out, nil
}

// makeSource makes a volume's folder in the task's if nothing is there, as docker does outside of it.
func makeSource(spec *driver.Spec, source string) error {
	if path.IsAbs(source) {
		return nil
	}
	root, err := os.OpenRoot(spec.Dirs.Task)
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err := root.Lstat(source); !errors.Is(err, fs.ErrNotExist) {
		return nil // what is wrong with it is told when it is mounted
	}
	if err := root.MkdirAll(source, 0o777); err != nil {
		return drover.Errorf(drover.Invalid, "volumes: making %s in the task's folder: %w", source, err)
	}
	return nil
}

func (m mountConfig) mount(spec *driver.Spec) (mount.Mount, error) {
	out := mount.Mount{Type: mount.Type(m.kind), Source: m.source, Target: m.target, ReadOnly: m.readOnly}
	switch m.kind {
	case "bind":
		source, err := inside(spec, m.source)
		if err != nil {
			return out, err
		}
		out.Source = source
		if m.propagation != "" {
			out.BindOptions = &mount.BindOptions{Propagation: mount.Propagation(m.propagation)}
		}
	case "volume":
		out.VolumeOptions = &mount.VolumeOptions{NoCopy: m.noCopy, Labels: m.labels}
		if m.driver != "" || len(m.driverOptions) > 0 {
			out.VolumeOptions.DriverConfig = &mount.Driver{Name: m.driver, Options: m.driverOptions}
		}
	case "tmpfs":
		out.TmpfsOptions = &mount.TmpfsOptions{SizeBytes: m.size, Mode: fs.FileMode(m.mode)} //nolint:gosec // bounded
	}
	return out, nil
}

// inside is the host's path of a mount's source: a relative one is the task's, and no link that the task planted leads
// out of there.
func inside(spec *driver.Spec, source string) (string, error) {
	if path.IsAbs(source) {
		return source, nil
	}
	full := filepath.Join(spec.Dirs.Task, source)
	real, err := filepath.EvalSymlinks(full)
	if err != nil {
		return "", drover.Errorf(drover.Invalid, "mounting %s: %w", source, err)
	}
	top, err := filepath.EvalSymlinks(spec.Dirs.Task)
	if err != nil {
		return "", err
	}
	if rel, err := filepath.Rel(top, real); err != nil || !filepath.IsLocal(rel) {
		return "", drover.Errorf(drover.Forbidden, "mounting %s: it leads out of the task's folder", source)
	}
	return real, nil
}
