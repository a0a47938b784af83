package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"drover"
)

// layerDir is where a layer's files are once it is complete.
func (s *Store) layerDir(diffID string) string { return filepath.Join(s.opts.Dir, "layers", diffID) }

// layer unpacks one layer, unless it is there. Its identity is what the image's configuration says: the content must
// have it. Callers for one layer at once are served by one of them.
func (s *Store) layer(ctx context.Context, l v1.Layer, diffID string, wrote func(int64)) error {
	if len(diffID) != 64 {
		return drover.Errorf(drover.Invalid, "layer %q: only sha256 is known", diffID)
	}
	_, err, _ := s.flights.Do("layer "+diffID, func() (any, error) {
		if _, err := os.Stat(s.layerDir(diffID)); err == nil {
			return nil, nil
		}
		return nil, s.unpackLayer(ctx, l, diffID, wrote)
	})
	return err
}

func (s *Store) unpackLayer(ctx context.Context, l v1.Layer, diffID string, wrote func(int64)) error {
	layers := filepath.Join(s.opts.Dir, "layers")
	if err := os.MkdirAll(layers, 0o700); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(layers, ".new-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)                      //nolint:errcheck // after the rename there is nothing
	if err := os.Chmod(tmp, 0o755); err != nil { //nolint:gosec // becomes a root directory
		return err
	}
	content, err := l.Uncompressed()
	if err != nil {
		return fmt.Errorf("opening layer %s: %w", diffID[:12], err)
	}
	defer content.Close()
	sum := sha256.New()
	stream := io.TeeReader(&cancelReader{ctx, content}, sum)
	o := unpackOptions{limits: s.limits(), chown: os.Geteuid() == 0, wrote: wrote}
	if err := unpack(stream, tmp, o); err != nil {
		return fmt.Errorf("layer %s: %w", diffID[:12], err)
	}
	if _, err := io.Copy(io.Discard, stream); err != nil { // padding after the archive's end counts too
		return fmt.Errorf("layer %s: %w", diffID[:12], err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != diffID {
		return drover.Errorf(drover.Invalid, "layer %s: its content has digest %s: the image is damaged or forged", diffID[:12], got[:12])
	}
	err = os.Rename(tmp, s.layerDir(diffID))
	if errors.Is(err, fs.ErrExist) || isNotEmpty(err) {
		return nil
	}
	return err
}

// cancelReader ends reading when the context ends.
type cancelReader struct {
	ctx context.Context //nolint:containedctx // lives as long as the call
	r   io.Reader
}

// Read reads unless the context ended.
func (c *cancelReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
