package docker

import (
	"context"
	"io"

	"github.com/drover-project/drover/internal/node/driver/docker/dockererr"
	"github.com/drover-project/drover/internal/node/image"
)

var _ image.Local = (*Driver)(nil)

// LocalImage implements image.Local: sandboxes take from the daemon what no registry gives.
func (d *Driver) LocalImage(ctx context.Context, ref string) (id string, err error) {
	info, err := d.images.Find(ctx, ref)
	return info.ID, err
}

// SaveImage implements image.Local.
func (d *Driver) SaveImage(ctx context.Context, id string) (io.ReadCloser, error) {
	r, err := d.docker.ImageSave(ctx, []string{id})
	if err != nil {
		return nil, dockererr.Of(err)
	}
	return r, nil
}
