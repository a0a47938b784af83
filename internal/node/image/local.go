package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/drover-project/drover"
)

// Local has images of this machine that no registry need have: a docker daemon.
type Local interface {
	// LocalImage is the id of what it has by that name. Errors: NotFound; Unavailable if nobody answers.
	LocalImage(ctx context.Context, ref string) (id string, err error)
	// SaveImage reads the image with that id, as docker save writes it.
	SaveImage(ctx context.Context, id string) (io.ReadCloser, error)
}

// fromLocal begins a record's Source when the image came from there; the id follows.
const fromLocal = "local:"

const (
	// askLocal bounds what takes a millisecond, so that a daemon that hangs delays no sandbox for longer.
	askLocal = time.Second
	// nearby is how long a registry is waited for whose image is on this machine: there may be no network at all.
	nearby = 10 * time.Second
)

// localID is what the machine has by that name; "" if nothing, or nobody who answers.
func (s *Store) localID(ctx context.Context, ref string) string {
	if s.opts.Local == nil {
		return ""
	}
	ctx, cancel := s.opts.Clock.WithTimeout(ctx, askLocal)
	defer cancel()
	id, err := s.opts.Local.LocalImage(ctx, ref)
	if err != nil {
		return ""
	}
	return id
}

// moved reports whether an image that came from this machine is another one there by now. One that is no longer there, or
// that nobody can be asked about, stays what it was.
func (s *Store) moved(ctx context.Context, rec *record) bool {
	had, local := strings.CutPrefix(rec.Source, fromLocal)
	if !local {
		return false
	}
	id := s.localID(ctx, rec.Ref)
	return id != "" && id != had
}

// findLocal opens what the machine has when no registry gives it. Errors: the registry's, which says that the machine was
// looked at too.
func (s *Store) findLocal(ctx context.Context, id string, refused error) (*opened, error) {
	code := drover.CodeOf(refused)
	switch {
	case ctx.Err() != nil, s.opts.Local == nil, code != drover.NotFound && code != drover.Forbidden && code != drover.Unavailable:
		return nil, refused
	case id == "":
		return nil, drover.Errorf(code, "%w; no docker daemon of this machine has it either", refused)
	}
	img, err := s.openLocal(ctx, id)
	if err != nil {
		return nil, drover.Errorf(code, "%w; nor can it be had from this machine's docker daemon: %w", refused, err)
	}
	s.opts.Log.Info("no registry gives the image: it is taken from this machine's docker daemon", "id", id, "registry", refused)
	return img, nil
}

// openLocal opens the daemon's image with that id. It spools the stream to a file without a name, because an archive is
// read by position and its manifest may come last. The returned image owns the file.
func (s *Store) openLocal(ctx context.Context, id string) (_ *opened, err error) {
	stream, err := s.opts.Local.SaveImage(ctx, id)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	f, err := os.CreateTemp(s.opts.Dir, ".saved-*")
	if err != nil {
		return nil, err
	}
	err = os.Remove(f.Name()) // so that it goes whatever happens to us
	if err == nil {
		_, err = io.Copy(f, &bounded{stream, s.limits().Bytes})
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading it: %w", err), f.Close())
	}
	in, err := openPacked(f, s.opts.Dir, s.limits().Bytes)
	if err != nil {
		return nil, err
	}
	img, err := openFiles(in)
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	img.close, img.source = in.Close, fromLocal+id
	return img, nil
}
