package env

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/cli/term"
)

// imageWait is how long a new environment may take until its first runner is warm: its image has to be fetched.
const imageWait = 5 * time.Minute

// maxName is the longest name of an environment, in bytes.
const maxName = 64

// nameOf is the environment that stands for an image: python-3.13 for python:3.13. Of a long one the end counts, where the version is.
func nameOf(image string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, image)
	return strings.TrimLeft(name[max(0, len(name)-maxName):], "._-")
}

// ofImage returns the environment of an image, which is made if it is not there. Errors: Invalid, Conflict if that name is another
// image's; those of awaitPool; the API's.
func ofImage(ctx context.Context, app *term.App, c *client.Client, image string, wait time.Duration) (string, error) {
	id := nameOf(image)
	if id == "" {
		return "", drover.Errorf(drover.Invalid, "-image %q is no image", image)
	}
	switch old, err := c.Environment(ctx, id); {
	case err == nil && old.Image == image:
		return id, nil
	case err == nil:
		return "", drover.Errorf(drover.Conflict, "the environment %q is there and has the image %s: make one "+
			"with 'drover env put NAME -image %s', and run there", id, old.Image, image)
	case drover.CodeOf(err) != drover.NotFound:
		return "", err
	}
	if _, _, err := c.PutEnvironment(ctx, execution.Environment{ID: id, Image: image, PoolSize: 1}); err != nil {
		return "", err
	}
	fmt.Fprintf(app.Err, "Made the environment %q, which keeps a runner warm until 'drover env delete %[1]s'.\n", id)
	return id, awaitPool(ctx, app, app.Err, c, filling{id: id, size: 1, wait: wait})
}
