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

// files reads an image on disk by the names of its files. An OCI layout (folder) and an archive (packed) implement it.
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

// open refuses everything but a regular file with Invalid. Errors of a missing file are those of package os.
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

// part is where one member of an archive lies in its file.
type part struct {
	// Both are bytes; at counts from the start of the uncompressed archive.
	at, size int64
	link     string // what it stands for; "" = it is a file
}

// The bounds on an archive's table of members keep a forged archive from filling the agent's memory. maxPath is the
// longest path that the kernel takes, in bytes.
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

// inflate replaces the file of a compressed archive by an uncompressed copy, at its start, so that members can be read
// by position. An uncompressed archive is only rewound. Errors: TooLarge when the copy would exceed limit bytes.
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

// note enters the member at the reader's position into the table. A later member of the same name replaces an earlier
// one. Sparse files are refused, because their content does not lie in one piece. Other kinds of members are skipped.
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

// open returns a reader of one member, which need not be closed. Links inside the archive are followed for three steps,
// and all else that is missing or loops is fs.ErrNotExist.
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
