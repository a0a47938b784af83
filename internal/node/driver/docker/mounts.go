package docker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/moby/moby/api/types/mount"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/options"
	"github.com/drover-project/drover/internal/node/driver/supervised"
)

// ownPath holds drover-init and the folder that it is handed its socket through.
const ownPath = "/.drover"

// checkMounts complains about mounts, volumes and tmpfs that could never be made. What the node gives no leave for is leave's.
func checkMounts(c *taskConfig, r *options.Reader) {
	for i := range c.mounts {
		m := &c.mounts[i]
		checkTarget("mounts", m.target, r)
		switch m.kind {
		case "bind":
			checkSource("mounts", m.source, r)
		case "volume":
			if strings.ContainsAny(m.source, "/\\") {
				r.Problem("mounts: %q is not the name of a volume", m.source)
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
		switch named := c.volumeDriver != "" && !path.IsAbs(parts[0]); {
		case !named:
			checkSource("volumes", parts[0], r)
		case !volumeName.MatchString(parts[0]) && !strings.Contains(parts[0], "${"):
			r.Problem("volumes: %q is not the name of a volume, which it is with a volume_driver", parts[0])
		}
		checkTarget("volumes", parts[1], r)
	}
	for _, t := range c.tmpfs {
		target, _, _ := strings.Cut(t, ":")
		checkTarget("tmpfs", target, r)
	}
}

// checkTarget keeps tasks from what is ours in their container.
func checkTarget(key, target string, r *options.Reader) {
	switch clean := path.Clean(target); {
	case !path.IsAbs(target) || clean == "/":
		r.Problem("%s: target %q is not an absolute path below /", key, target)
	case clean == ownPath || strings.HasPrefix(clean, ownPath+"/"):
		r.Problem("%s: target %q is the supervisor's", key, target)
	}
}

// checkSource refuses relative paths that lead out by their spelling; inside does the same for links, at the start.
func checkSource(key, source string, r *options.Reader) {
	switch {
	case source == "":
		r.Problem("%s: a mount has no source", key)
	case !path.IsAbs(source) && !filepath.IsLocal(source):
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
	for _, f := range folders(spec) {
		if f.source != "" && !f.scratch {
			list = append(list, bind(f.source, f.target, spec.Pool))
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

// folder is one of the allocation's.
type folder struct {
	source, target string
	scratch        bool // the container has one of its own in its place, in memory
	sticky         bool
}

// folders of the allocation. A warm runner, whose code is unknown, leaves nothing in the machine's: it has its own, in
// memory, and what the agent put there before is shown read-only.
func folders(spec *driver.Spec) []folder {
	list := []folder{
		{source: spec.Dirs.Shared, target: supervised.AllocPath},
		{source: spec.Dirs.Local, target: supervised.LocalPath},
		{source: spec.Dirs.Secrets, target: supervised.SecretsPath},
	}
	if !spec.Pool {
		return list
	}
	for i := range list {
		f := &list[i]
		f.scratch = f.source == "" || f.target == supervised.AllocPath || supervised.EmptyDir(f.source)
	}
	return append(list, folder{target: "/tmp", scratch: true, sticky: true})
}

// tmpfs are the task's own, and those that a warm runner has for its allocation's folders.
func tmpfs(spec *driver.Spec, c taskConfig) map[string]string {
	out := map[string]string{}
	for _, f := range folders(spec) {
		if f.scratch {
			mode := "0777"
			if f.sticky {
				mode = "1777"
			}
			out[f.target] = fmt.Sprintf("rw,exec,nosuid,nodev,mode=%s,size=%d", mode, diskBytes(spec))
		}
	}
	for _, t := range c.tmpfs {
		target, options, _ := strings.Cut(t, ":")
		out[target] = options
	}
	return out
}

// diskBytes is what a warm runner may write.
func diskBytes(spec *driver.Spec) int64 { return max(spec.DiskMB, 1) << 20 }

// shm is the size of the memory that a container's programs share, which is a place to write to as well; 0: docker's own.
func shm(spec *driver.Spec, c taskConfig) int64 {
	const own = 64 << 20
	if c.shmSize == 0 && spec.Pool {
		return min(own, diskBytes(spec))
	}
	return c.shmSize
}

// NeedsFolders reports whether anything of the allocation's folder is ever used: not by a warm runner that names none.
func (d *Driver) NeedsFolders(group *drover.TaskGroup, task *drover.Task) bool {
	c, err := d.parse(task.Config, nil)
	return group.Pool == nil || err != nil || c.command != "" || len(c.args) > 0 || c.hasEntry || c.image.Load != "" ||
		len(c.mounts)+len(c.volumes) > 0
}

// volumeName is what docker takes for one.
var volumeName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`)

// binds are the volumes as docker has them: a folder of the machine that is not there is made.
func (d *Driver) binds(spec *driver.Spec, c taskConfig) ([]string, error) {
	var out []string
	for _, v := range c.volumes {
		parts := append(strings.Split(v, ":"), "")
		if c.volumeDriver != "" && !path.IsAbs(parts[0]) {
			if !volumeName.MatchString(parts[0]) {
				return nil, drover.Errorf(drover.Invalid, "volumes: %q is not the name of a volume, which it is with a volume_driver", parts[0])
			}
			out = append(out, v)
			continue
		}
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
	// A root keeps to the folder, whatever links the task has planted in it.
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

// mount translates it for docker. Errors: Invalid for a source that is not there, Forbidden for one outside of the task's folder.
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
		out.TmpfsOptions = &mount.TmpfsOptions{SizeBytes: m.size, Mode: fs.FileMode(m.mode)} // bounded
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
