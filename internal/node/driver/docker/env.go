package docker

import (
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/supervised"
)

// environment is the image's with the task's over it.
func environment(spec *driver.Spec, c taskConfig, img imageInfo) map[string]string {
	image := img.env
	if c.hostname != "" {
		image = append([]string{"HOSTNAME=" + c.hostname}, image...)
	}
	return supervised.Environment(spec, image)
}
