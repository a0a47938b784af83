package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver/docker/dockererr"
	"github.com/drover-project/drover/internal/node/driver/docker/images"
	"github.com/drover-project/drover/internal/node/supervisor/guest/hold"
)

// holdImage is empty: the program is mounted. It is made here, so that no registry is needed.
const holdImage = "drover-hold:1"

// HoldNetwork implements groupnet.Holder: it starts a container that only waits, with a loopback and no other network.
func (d *Driver) HoldNetwork(ctx context.Context, name, hostname string) (pid int, err error) {
	img, err := d.images.Find(ctx, holdImage)
	if drover.CodeOf(err) == drover.NotFound {
		img, err = d.importHold(ctx)
	}
	if err != nil {
		return 0, fmt.Errorf("making the image of the network's container: %w", err)
	}
	id, err := d.create(ctx, client.ContainerCreateOptions{
		Name: name,
		Config: &container.Config{
			// It runs as nobody, without rights, and its root is read-only: it exists only to keep a namespace open.
			Image: img.ID, Hostname: hostname, User: "65534:65534", Entrypoint: []string{ownPath + "/init", hold.Command}, Cmd: []string{},
			Labels: map[string]string{labelOwner: d.cfg.Owner, labelID: name}, Env: []string{"GOMAXPROCS=1"},
		},
		HostConfig: &container.HostConfig{
			LogConfig: container.LogConfig{Type: "none"}, NetworkMode: "none", ReadonlyRootfs: true, CapDrop: []string{"ALL"}, Init: new(false),
			Mounts: []mount.Mount{{Type: mount.TypeBind, Source: d.cfg.Binary, Target: ownPath + "/init", ReadOnly: true}}, Runtime: d.holdRuntime(),
		},
	})
	if err != nil {
		return 0, err
	}
	d.remember(name) // a later agent knows it by its name
	d.forget(id)
	if _, err := d.docker.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
		return 0, fmt.Errorf("starting the network's container: %w", dockererr.Of(err))
	}
	pid, err = d.NetworkHeld(ctx, name)
	if err == nil && pid == 0 {
		err = drover.Errorf(drover.Unavailable, "the network's container ended at once")
	}
	return pid, err
}

// holdRuntime is runc where the daemon's default is another: the namespace has to be the machine's.
func (d *Driver) holdRuntime() string {
	if info := d.daemon.last.Load(); info != nil && info.DefaultRuntime != plainRuntime {
		if _, ok := info.Runtimes[plainRuntime]; ok {
			return plainRuntime
		}
	}
	return ""
}

// plainRuntime is the name under which every dockerd knows the runtime that shares the machine's kernel.
const plainRuntime = "runc"

// importHold makes the image: one empty folder.
func (d *Driver) importHold(ctx context.Context) (images.Image, error) {
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	err := w.WriteHeader(&tar.Header{Name: ownPath[1:] + "/", Typeflag: tar.TypeDir, Mode: 0o755})
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return images.Image{}, err
	}
	if err := d.Import(ctx, holdImage, &text); err != nil {
		return images.Image{}, err
	}
	return d.images.Find(ctx, holdImage)
}

// Import makes an image of a tar archive.
func (d *Driver) Import(ctx context.Context, ref string, root io.Reader) error {
	answer, err := d.docker.ImageImport(ctx, client.ImageImportSource{Source: root, SourceName: "-"}, ref, client.ImageImportOptions{})
	if err != nil {
		return dockererr.Of(err)
	}
	_, err = io.Copy(io.Discard, answer)
	_ = answer.Close() // read
	if err != nil {
		return drover.Errorf(drover.Unavailable, "importing %s: %w", ref, err)
	}
	return nil
}

// RemoveImage removes an image that Import made.
func (d *Driver) RemoveImage(ctx context.Context, ref string) error {
	_, err := d.docker.ImageRemove(ctx, ref, client.ImageRemoveOptions{Force: true, PruneChildren: true})
	return dockererr.Of(err)
}

// NetworkHeld implements groupnet.Holder: the container's first process, 0 if it does not run.
func (d *Driver) NetworkHeld(ctx context.Context, name string) (pid int, err error) {
	r, err := d.docker.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	switch {
	case cerrdefs.IsNotFound(err):
		return 0, nil
	case err != nil:
		return 0, dockererr.Of(err)
	case r.Container.State == nil || !r.Container.State.Running:
		return 0, nil
	}
	return r.Container.State.Pid, nil
}

// KeepNetwork implements groupnet.Holder: a sweep spares it.
func (d *Driver) KeepNetwork(name string) { d.remember(name) }

// LetGoNetwork implements groupnet.Holder. A daemon that is away loses it to a later sweep.
func (d *Driver) LetGoNetwork(ctx context.Context, name string) error {
	d.forget(name)
	err := d.remove(ctx, name)
	if drover.CodeOf(err) == drover.Unavailable && ctx.Err() == nil {
		d.cfg.Log.Warn("the docker daemon is away: a group's network container is removed when it is back", "container", name, "error", err)
		return nil
	}
	return err
}
