package docker

import (
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/docker/images"
	"github.com/drover-project/drover/internal/node/driver/supervised"
)

// environment is the image's with the task's over it.
func environment(spec *driver.Spec, c taskConfig, img images.Image) map[string]string {
	image := img.Env
	// The host name comes first, so that the image and the task may replace it, as in docker.
	if c.hostname != "" {
		image = append([]string{"HOSTNAME=" + c.hostname}, image...)
	}
	return supervised.Environment(spec, image)
}
