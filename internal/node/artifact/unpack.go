package artifact

import (
	"archive/tar"
	"archive/zip"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/forked"
)

// archiveKind finds how a file is packed: by the option, else by its name. "" = not at all.
func archiveKind(name, option string) string {
	switch option {
	case "false":
		return ""
	case "", "true":
	default:
		return option
	}
	for _, k := range []string{"tar.gz", "tgz", "tar.bz2", "tbz2", "tar", "zip"} {
		if strings.HasSuffix(name, "."+k) {
			return k
		}
	}
	return ""
}

// unpack writes an archive's files below its base. Entries that lead out are an error, links that do are made but never
// followed; devices are left out. Packed bombs end at the limits of bytes and members, also those that unpack to nothing,
// and with ctx.
func (u *unpacker) unpack(f *os.File, kind string) error {
	var r io.Reader = f
	switch kind {
	case "zip":
		return u.all(func() error { return u.zip(f) })
	case "tar.gz", "tgz":
		z, err := gzip.NewReader(f)
		if err != nil {
			return drover.Errorf(drover.Invalid, "unpacking: %w", err)
		}
		r = z
	case "tar.bz2", "tbz2":
		r = bzip2.NewReader(f)
	case "tar":
	default:
		return drover.Errorf(drover.NotImplemented, "archives of kind %q cannot be unpacked", kind)
	}
	return u.stream(r)
}

// stream unpacks a tar stream.
func (u *unpacker) stream(r io.Reader) error {
	return u.all(func() error {
		return u.tar(&unpacked{ctx: u.ctx, r: r, left: u.most + int64(u.mostEntries)*maxHeader, most: u.most})
	})
}

// all makes the base, and runs what unpacks. Of an archive of which a folder is wanted, that must have been there.
func (u *unpacker) all(f func() error) error {
	if err := u.root.MkdirAll(u.base, 0o777); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	if u.subdir != "" && !u.found {
		return drover.Errorf(drover.Invalid, "unpacking: the archive has no folder %q", u.subdir)
	}
	return nil
}

func tooMuch(most int64) error {
	return drover.Errorf(drover.TooLarge, "unpacking: more than %d bytes, which are what the node takes "+
		"(client.artifact.decompression_size_limit), or what its disk has", most)
}

// maxHeader is about what an entry of a tar file takes beside its content, with a long name.
const maxHeader = 4 << 10

// unpacked is what comes out of a packed file: entries that are left out count too.
type unpacked struct {
	ctx  context.Context
	r    io.Reader
	left int64
	most int64 // what the error says
}

// Read implements io.Reader.
func (u *unpacked) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := u.r.Read(p)
	if u.left -= int64(n); u.left < 0 {
		return 0, tooMuch(u.most)
	}
	return n, err
}

// unpacker is one archive that is being unpacked.
type unpacker struct {
	ctx  context.Context
	root *os.Root
	// base is where the archive's root lies, relative to root.
	base string
	// subdir is the folder of the archive that is wanted, "" = all of it; found says that something of it came.
	subdir string
	found  bool
	// left and entries are how many bytes of content, and how many members, may still come; most and mostEntries might at first.
	left, most           int64
	entries, mostEntries int
}

// path returns where a member goes, relative to root, and counts the member; "" is nowhere. Leading slashes are dropped, as tar does.
// Errors: Invalid for a name with too many "..", TooLarge.
func (u *unpacker) path(name string) (string, error) {
	name = filepath.Clean(strings.TrimLeft(name, "/"))
	if !filepath.IsLocal(name) {
		return "", drover.Errorf(drover.Invalid, "unpacking: entry %q leads out of the archive", name)
	}
	if u.entries--; u.entries < 0 {
		return "", drover.Errorf(drover.TooLarge, "unpacking: more than %d files, which the node's "+
			"client.artifact.decompression_file_count_limit allows", u.mostEntries)
	}
	if u.subdir != "" {
		rest, inside := strings.CutPrefix(name+"/", u.subdir+"/")
		if !inside {
			return "", nil
		}
		u.found = true
		if name = strings.TrimSuffix(rest, "/"); name == "" {
			return "", nil // the folder itself, which is there
		}
	}
	return filepath.Join(u.base, name), nil
}

// tar unpacks a tar stream. Members that are neither a file, a folder nor a link are skipped.
func (u *unpacker) tar(r io.Reader) error {
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return unpackingError(err)
		}
		p, err := u.path(h.Name)
		if err != nil {
			return err
		}
		if p == "" {
			continue
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = u.root.MkdirAll(p, 0o777)
		case tar.TypeReg:
			err = u.file(p, t, os.FileMode(h.Mode)&os.ModePerm)
		case tar.TypeSymlink:
			err = u.link(p, h.Linkname)
		case tar.TypeLink:
			err = u.hardLink(p, h.Linkname)
		}
		if err != nil {
			return err
		}
	}
}

// unpackingError keeps the codes TooLarge, Canceled and Unavailable. They say that a bound was met, that the start was cancelled,
// or that what gives the stream failed, such as git where memory was short. Any other error means that the archive is damaged:
// Invalid.
func unpackingError(err error) error {
	if code := drover.CodeOf(err); code == drover.TooLarge || code == drover.Canceled || code == drover.Unavailable {
		return err
	}
	return drover.Errorf(drover.Invalid, "unpacking: %w", err)
}

// maxDirectory bounds the directory of a zip file, in bytes: it is held in memory, several times as large.
const maxDirectory = 24 << 20

// directoryReader reads a zip file, of which the directory may not be too long.
type directoryReader struct {
	io.ReaderAt
	left int64 // while the directory is read; then whatever is read is of files
	open bool
}

// ReadAt implements io.ReaderAt.
func (d *directoryReader) ReadAt(p []byte, at int64) (int, error) {
	if !d.open {
		if d.left -= int64(len(p)); d.left < 0 {
			return 0, drover.Errorf(drover.TooLarge, "unpacking: the directory of the zip file has more than %d MB", maxDirectory>>20)
		}
	}
	return d.ReaderAt.ReadAt(p, at)
}

// zip unpacks a zip file. Its directory is at the end of the file and is read whole first, under a bound of its own.
func (u *unpacker) zip(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	source := &directoryReader{ReaderAt: f, left: maxDirectory}
	z, err := zip.NewReader(source, info.Size())
	if err != nil {
		return unpackingError(err)
	}
	source.open = true
	for _, e := range z.File {
		if u.ctx.Err() != nil {
			return u.ctx.Err()
		}
		if err := u.zipEntry(e); err != nil {
			return err
		}
	}
	return nil
}

// zipEntry unpacks one member. A symbolic link's target is the content of its member.
func (u *unpacker) zipEntry(e *zip.File) error {
	p, err := u.path(e.Name)
	if err != nil || p == "" {
		return err
	}
	if e.FileInfo().IsDir() {
		return u.root.MkdirAll(p, 0o777)
	}
	r, err := e.Open()
	if err != nil {
		return drover.Errorf(drover.Invalid, "unpacking: %w", err)
	}
	defer r.Close()
	switch mode := e.Mode(); {
	case mode&os.ModeSymlink != 0:
		// The kernel takes no longer target.
		target, err := io.ReadAll(io.LimitReader(r, 4096))
		if err != nil {
			return drover.Errorf(drover.Invalid, "unpacking: %w", err)
		}
		return u.link(p, string(target))
	case mode.IsRegular():
		return u.file(p, r, mode.Perm())
	}
	return nil
}

// file writes one file, in place of what has its name. Its owner, the agent, may always read and write it. Errors:
// TooLarge once the archive has more bytes than allowed.
func (u *unpacker) file(p string, r io.Reader, perm os.FileMode) error {
	if err := makeParents(u.root, p); err != nil {
		return err
	}
	_ = u.root.Remove(p)
	f, err := u.root.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm|0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, &unpacked{ctx: u.ctx, r: io.LimitReader(r, u.left+1), left: u.left + 1, most: u.most})
	if u.left -= n; err == nil && u.left < 0 {
		err = tooMuch(u.most)
	}
	if closeErr := forked.Close(f); err == nil {
		err = closeErr
	}
	return err
}

// link makes a symbolic link in place of what has its name. The target may lead anywhere: os.Root does not follow it out
// of the folder, and the task sees its own files there.
func (u *unpacker) link(p, target string) error {
	if err := makeParents(u.root, p); err != nil {
		return err
	}
	_ = u.root.Remove(p)
	return u.root.Symlink(target, p)
}

// hardLink links to a member that came before; the target must lie in the archive too. It counts as a second member.
func (u *unpacker) hardLink(p, target string) error {
	old, err := u.path(target)
	if err != nil {
		return err
	}
	if old == "" {
		return drover.Errorf(drover.Invalid, "unpacking: %q is a link to %q, which is outside of %q", p, target, u.subdir)
	}
	if err := makeParents(u.root, p); err != nil {
		return err
	}
	_ = u.root.Remove(p)
	return u.root.Link(old, p)
}
