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
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// layerDir is where a layer's files are once it is complete.
func (s *Store) layerDir(diffID string) string { return filepath.Join(s.opts.Dir, "layers", diffID) }

// layer unpacks one layer, unless it is there. Its identity is what the image's configuration says: the content must
// have it. Callers for one layer at once are served by one of them.
func (s *Store) layer(ctx context.Context, open content, diffID string, limits Limits, wrote func(int64)) error {
	if len(diffID) != sha256.Size*2 {
		return drover.Errorf(drover.Invalid, "layer %q: only sha256 is known", diffID)
	}
	for {
		_, err, _ := s.layers.Do(diffID, func() (any, error) {
			if _, err := os.Stat(s.layerDir(diffID)); err == nil {
				return nil, nil
			}
			return nil, s.unpackLayer(ctx, open, diffID, limits, wrote)
		})
		if !errors.Is(err, context.Canceled) || ctx.Err() != nil {
			return err
		} // else nobody waits for the image any more whose fetch it was
	}
}

// The registry may be asked so often for a layer that breaks off, with a pause between.
const (
	layerTries = 3
	layerPause = time.Second
)

// tries fetches a layer again that broke off on its way.
func (s *Store) tries(ctx context.Context, img *opened, i int, diffID string, limits Limits, wrote func(int64)) error {
	for n := 1; ; n++ {
		err := s.layer(ctx, img.layers[i], diffID, limits, wrote)
		broken := (*brokenError)(nil)
		if !img.remote || !errors.As(err, &broken) || n == layerTries || !clock.Sleep(ctx, s.opts.Clock, time.Duration(n)*layerPause) {
			return err
		}
		s.opts.Log.Info("a layer broke off, trying again", "layer", diffID[:12], "error", err)
	}
}

// unpackLayer unpacks a layer beside its final place and renames it only after its digest was compared with diffID. So a
// directory with a layer's name is always complete. Errors: Invalid for a wrong digest, and those of read.
func (s *Store) unpackLayer(ctx context.Context, open content, diffID string, limits Limits, wrote func(int64)) (err error) {
	layers := filepath.Join(s.opts.Dir, "layers")
	if err := os.MkdirAll(layers, 0o700); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(layers, ".new-*")
	if err != nil {
		return err
	}
	defer removeTree(tmp)                        //nolint:errcheck // after the rename there is nothing
	if err := os.Chmod(tmp, 0o755); err != nil { // becomes a root directory
		return err
	}
	got, err := s.read(ctx, open, tmp, limits, wrote)
	if err != nil {
		return fmt.Errorf("layer %s: %w", diffID[:12], err)
	}
	if got != diffID {
		return drover.Errorf(drover.Invalid, "layer %s: its content has digest %s: the image is damaged or forged", diffID[:12], got[:12])
	}
	err = os.Rename(tmp, s.layerDir(diffID))
	if errors.Is(err, fs.ErrExist) || isNotEmpty(err) {
		return nil
	}
	return err
}

// read unpacks a layer's content and returns the digest of its tar stream.
func (s *Store) read(ctx context.Context, open content, dir string, limits Limits, wrote func(int64)) (digest string, err error) {
	raw, err := open()
	if err != nil {
		return "", err
	}
	defer raw.Close()
	w := &wire{ctx: ctx, r: raw}
	w.quiet = s.opts.Clock.AfterFunc(s.quiet(), func() {
		w.stalled.Store(true)
		_ = raw.Close() // ends a read
	})
	defer w.quiet.Stop()
	w.patience = s.quiet()
	plain, end, err := decompress(w)
	if err != nil {
		return "", w.cause(err)
	}
	if end != nil {
		defer end()
	}
	sum := sha256.New()
	stream := io.TeeReader(&bounded{plain, limits.stream()}, sum)
	if err := unpack(stream, dir, unpackOptions{limits: limits, chown: os.Geteuid() == 0, wrote: wrote}); err != nil {
		return "", w.cause(err)
	}
	if _, err := io.Copy(io.Discard, stream); err != nil { // padding after the archive's end counts too
		return "", w.cause(err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// wire is where a layer comes from. It ends with the context, and when nothing comes any more.
type wire struct {
	ctx      context.Context // lives as long as the call
	r        io.Reader
	quiet    clock.Timer
	patience time.Duration
	stalled  atomic.Bool
	err      error // but for the end
}

// brokenError says that the transfer of a layer broke off, which may pass. Without it, a layer that was cut short would
// look like a damaged image, which does not pass.
type brokenError struct{ error }

// Unwrap returns the cause.
func (b *brokenError) Unwrap() error { return b.error }

// Read reads unless the context ended.
func (w *wire) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		w.err = err
		return 0, err
	}
	n, err := w.r.Read(p)
	if n > 0 {
		w.quiet.Reset(w.patience)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		w.err = err
	}
	return n, err
}

// cause returns why reading failed. If the connection broke, it is that, rather than the error which the cut archive led
// to. It first reads on to the end of the stream, because the connection may break only then.
func (w *wire) cause(err error) error {
	if w.err == nil && !diskFull(err) && drover.CodeOf(err) != drover.TooLarge {
		_, _ = io.Copy(io.Discard, w) // w.err tells
	}
	switch {
	case w.err == nil:
		return err
	case w.ctx.Err() != nil:
		return w.ctx.Err()
	case w.stalled.Load():
		return &brokenError{errQuiet}
	}
	return &brokenError{w.err}
}

// removeTree removes a tree, of which folders may not be written in.
func removeTree(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error { // told by what comes next
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) // a folder that goes
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// diskFull reports whether the disk, or a quota on it, has no room.
func diskFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }
