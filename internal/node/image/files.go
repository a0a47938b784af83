package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
)

// files is an image on disk, to be read by the names of its files.
type files interface {
	// open also tells the size. Errors: fs.ErrNotExist.
	open(name string) (io.ReadCloser, int64, error)
	Close() error
}

// maxDocument bounds manifests and configurations, which are read into memory; registries allow 4 MB.
const maxDocument = 8 << 20

// document reads a small file whole.
func document(in files, name string) ([]byte, error) {
	f, size, err := in.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > maxDocument {
		return nil, drover.Errorf(drover.TooLarge, "its %s has %d bytes, at most %d are read", name, size, maxDocument)
	}
	return io.ReadAll(io.LimitReader(f, size))
}

// folder is an OCI layout. No link leads out of it, and what is no file is not opened.
type folder struct{ *os.Root }

func (f folder) open(name string) (io.ReadCloser, int64, error) {
	r, err := f.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe would be waited for
	if err != nil {
		return nil, 0, err
	}
	info, err := r.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = drover.Errorf(drover.Invalid, "its %s is no file", name)
	}
	if err != nil {
		return nil, 0, errors.Join(err, r.Close())
	}
	return r, info.Size(), nil
}

// packed is an archive, read in place.
type packed struct {
	file  *os.File
	parts map[string]part // by name
}

type part struct {
	at, size int64
	link     string // what it stands for; "" = it is a file
}

const (
	maxParts = 10_000
	maxPath  = 4096
)

// openPacked looks through an archive, which is closed with it, or now if it is none. A compressed one is written to a file
// without a name in scratch first.
func openPacked(f *os.File, scratch string, limit int64) (_ *packed, err error) {
	p := &packed{file: f, parts: map[string]part{}}
	defer func() {
		if err != nil {
			_ = p.Close()
		}
	}()
	if err := p.inflate(scratch, limit); err != nil {
		return nil, err
	}
	for r := tar.NewReader(p.file); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return p, nil
		}
		if err != nil {
			return nil, fmt.Errorf("it is no whole tar archive: %w", err)
		}
		if err := p.note(h); err != nil {
			return nil, err
		}
	}
}

func (p *packed) inflate(scratch string, limit int64) error {
	content, end, err := decompress(p.file)
	if err != nil {
		return err
	}
	if end == nil {
		_, err := p.file.Seek(0, io.SeekStart)
		return err
	}
	defer end()
	plain, err := os.CreateTemp(scratch, ".archive-*")
	if err != nil {
		return err
	}
	err = os.Remove(plain.Name()) // so that it goes whatever happens to us
	if err == nil {
		_, err = io.Copy(plain, &bounded{content, limit})
	}
	err = errors.Join(err, p.file.Close())
	p.file = plain
	if err == nil {
		_, err = plain.Seek(0, io.SeekStart)
	}
	return err
}

func (p *packed) note(h *tar.Header) error {
	at, err := p.file.Seek(0, io.SeekCurrent) // the tar reader reads no further than it needs
	if err != nil {
		return err
	}
	name := path.Clean(h.Name)
	if len(p.parts) >= maxParts || len(name) > maxPath {
		return drover.Errorf(drover.TooLarge, "it has too many files for an image")
	}
	switch h.Typeflag {
	case tar.TypeReg:
		for key := range h.PAXRecords {
			if strings.HasPrefix(key, "GNU.sparse") {
				return drover.Errorf(drover.Invalid, "its %s is sparse", name)
			}
		}
		p.parts[name] = part{at: at, size: h.Size}
	case tar.TypeSymlink:
		p.parts[name] = part{link: path.Join(path.Dir(name), h.Linkname)}
	case tar.TypeLink:
		p.parts[name] = part{link: path.Clean(h.Linkname)}
	}
	return nil
}

func (p *packed) open(name string) (io.ReadCloser, int64, error) {
	name = path.Clean(name)
	one, ok := p.parts[name]
	for hops := 0; ok && one.link != "" && hops < 3; hops++ { // older dockers write a layer once
		one, ok = p.parts[one.link]
	}
	if !ok || one.link != "" {
		return nil, 0, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return io.NopCloser(io.NewSectionReader(p.file, one.at, one.size)), one.size, nil
}

// Close closes the file.
func (p *packed) Close() error { return p.file.Close() }

var _, _ files = folder{}, (*packed)(nil)
