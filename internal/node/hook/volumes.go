package hook

import (
	"context"
	"os"
	"path/filepath"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
)

// volumes turns the task's volume mounts into mounts of the node's host volumes.
type volumes struct{}

func (volumes) Name() string { return "volumes" }

// Once is false: mounts are not stored with the task, and each start needs them.
func (volumes) Once() bool { return false }

// Prestart adds the mounts to the request, for the driver.
func (volumes) Prestart(_ context.Context, r *Request) error {
	for _, m := range r.Task.VolumeMounts {
		mount, err := hostMount(r, m)
		if err != nil {
			return &Failure{Err: err}
		}
		r.Mounts = append(r.Mounts, mount)
	}
	return nil
}

// hostMount finds the host volume behind a mount. With per_alloc its name ends in the allocation's index, like
// "data[2]". It is read-only if the task, the group or the node says so. Errors: Invalid, NotImplemented, NotFound, also where the
// volume's folder is gone since the node began to offer it: docker would make an empty one.
func hostMount(r *Request, m *drover.VolumeMount) (driver.Mount, error) {
	request := r.Group.Volumes[m.Volume]
	if request == nil {
		return driver.Mount{}, drover.Errorf(drover.Invalid, "volume_mount %q: the group has no such volume", m.Volume)
	}
	if request.Type != "" && request.Type != "host" {
		return driver.Mount{}, drover.Errorf(drover.NotImplemented, "volume %q: type %q is not there yet, only host", m.Volume, request.Type)
	}
	source := r.Env.Replace(request.SourceOf(r.Alloc.Index()))
	volume := r.Node.HostVolumes[source]
	if !volume.OfferedTo(r.Alloc.Namespace) {
		return driver.Mount{}, drover.Errorf(drover.NotFound, "volume %q: this node has no host volume %q", m.Volume, source)
	}
	if _, err := os.Stat(volume.Path); err != nil {
		return driver.Mount{}, drover.Errorf(drover.NotFound, "volume %q: host volume %q is not there any more: %w", m.Volume, source, err)
	}
	if err := moved(volume); err != nil {
		return driver.Mount{}, drover.Errorf(drover.NotFound, "volume %q: host volume %q: %w", m.Volume, source, err)
	}
	return driver.Mount{
		Source: volume.Path, Target: r.Env.Replace(m.Destination),
		ReadOnly: m.ReadOnly || request.ReadOnly || volume.ReadOnly,
	}, nil
}

// moved says that there is a link in the path of a folder that was registered as a volume, where there was none then. Whoever put
// it there, a user of the machine or a guest who may write above, does not choose what is mounted. Folders that the node made
// have their id as a name, and lie where only the agent writes.
func moved(volume *drover.HostVolumeInfo) error {
	if volume.ID == "" || filepath.Base(volume.Path) == volume.ID {
		return nil
	}
	if real, err := filepath.EvalSymlinks(volume.Path); err != nil || real != filepath.Clean(volume.Path) {
		return drover.Errorf(drover.NotFound, "%s leads elsewhere by now: register it anew", volume.Path)
	}
	return nil
}
