package images

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/moby/moby/client"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/docker/dockererr"
	"github.com/drover-project/drover/internal/node/image"
)

// LoadedName is the repository of images that tasks brought along, each tagged with its own digest. So nothing that a task brings can
// take the place of an image that others run by its name.
const LoadedName = "drover-load:"

// load gives the daemon an image out of an archive in the task's folder. The path is opened so that no link leads out of
// there, and the daemon never sees the archive itself: what it says of other images and names is left out.
func (s *Cache) load(ctx context.Context, spec *driver.Spec, c Request) (Image, error) {
	root, err := os.OpenRoot(spec.Dirs.Task)
	if err != nil {
		return Image{}, err
	}
	defer root.Close()
	f, err := root.Open(c.Load)
	if err != nil {
		return Image{}, drover.Errorf(drover.Invalid, "load: %w", err)
	}
	saved, err := image.OpenSaved(f, s.cfg.Owner, c.Ref)
	if err != nil {
		code := drover.CodeOf(err)
		if code == drover.Internal {
			code = drover.Invalid
		}
		return Image{}, drover.Errorf(code, "load: %s: %w", c.Load, err)
	}
	defer saved.Close() //nolint:errcheck // it was only read
	ref := LoadedName + strings.TrimPrefix(saved.ID, "sha256:")
	had, err := s.Find(ctx, ref)
	if err == nil && had.ID == saved.ID { // an earlier start loaded it
		return had, nil
	}
	if err := s.give(ctx, saved, ref); err != nil {
		return Image{}, err
	}
	return s.got(ctx, ref, had)
}

// give loads the image by that name.
func (s *Cache) give(ctx context.Context, saved *image.Saved, ref string) error {
	r, w := io.Pipe()
	wrote := make(chan error, 1)
	go func() { // ends with the archive, or when nobody reads it any more
		err := saved.Write(w, ref)
		w.CloseWithError(err) // nil is the end
		wrote <- err
	}()
	answer, err := s.cfg.Docker.ImageLoad(ctx, r, client.ImageLoadWithQuiet(true))
	_ = r.Close()
	if bad := <-wrote; bad != nil && !errors.Is(bad, io.ErrClosedPipe) {
		if err == nil {
			_ = answer.Close() // it was not whole
		}
		return drover.Errorf(drover.Invalid, "load: %w", bad)
	}
	if err != nil {
		return dockererr.Of(err)
	}
	said, err := io.ReadAll(io.LimitReader(answer, 1<<20))
	_ = answer.Close() // read
	if err != nil {
		return drover.Errorf(drover.Unavailable, "load: %w", err)
	}
	// The daemon answers without an error even for archives that it did not like, so the image is looked for.
	if _, err := s.Find(ctx, ref); err != nil {
		return drover.Errorf(drover.Invalid, "load: the docker daemon did not take the image: %s", streamText(said))
	}
	return nil
}

// streamText takes the words out of a stream of messages.
func streamText(b []byte) string {
	var words []string
	dec := json.NewDecoder(bytes.NewReader(b))
	for {
		var m struct{ Stream, Error string }
		if err := dec.Decode(&m); err != nil {
			if !errors.Is(err, io.EOF) {
				words = append(words, err.Error())
			}
			return strings.TrimSpace(strings.Join(words, " "))
		}
		words = append(words, strings.TrimSpace(m.Stream+m.Error))
	}
}
