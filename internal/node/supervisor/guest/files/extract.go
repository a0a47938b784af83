package files

import (
	"archive/tar"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// Extract unpacks the tar that in gives below a directory, which it makes. Devices are left out. Errors: Invalid for what
// is no tar, NotFound, Forbidden, Exhausted.
func (s *Files) Extract(in io.Reader, req execution.FileRequest) error {
	dir, err := s.absolute(req.Path)
	if err != nil {
		return err
	}
	err = s.as(req.Privileged, func() error {
		if err := os.MkdirAll(dir, parentMode); err != nil {
			return err
		}
		u := unpacker{s: s, dir: dir, owners: req.Privileged && os.Geteuid() == 0, dirs: map[string]*tar.Header{}}
		for r := tar.NewReader(in); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				return u.finish()
			}
			if err != nil {
				return drover.Errorf(drover.Invalid, "reading the archive: %w", err)
			}
			if err := u.unpack(h, r); err != nil {
				return fileError(h.Name, err)
			}
		}
	})
	return fileError(req.Path, err)
}

// unpacker makes the entries of an archive, with their modes and times and, if it may, their owners.
type unpacker struct {
	s      *Files
	dir    string
	owners bool
	// dirs, by their paths, get theirs at last: what is made in a directory changes its time, and may not be made any more.
	dirs map[string]*tar.Header
}

// unpack makes one entry. Its name cannot lead above dir.
func (u *unpacker) unpack(h *tar.Header, r io.Reader) error {
	full, o := u.path(h.Name), u.ids(h)
	if full == u.dir {
		return nil
	}
	switch h.Typeflag {
	case tar.TypeDir:
		// Its owner gets all rights for now, so that a read-only directory can be filled; finish takes them away.
		if err := mkdir(full, bits(h)|ownerBits, o); err != nil {
			return err
		}
		u.dirs[full] = h
		return nil
	case tar.TypeReg:
		return u.s.replace(full, bits(h), o, h.ModTime, r)
	case tar.TypeSymlink:
		return link(full, func() error { return errors.Join(os.Symlink(h.Linkname, full), setTime(full, h.ModTime)) }, o)
	// A hard link's target is a name in the archive, so it is resolved like an entry's own.
	case tar.TypeLink:
		return link(full, func() error { return os.Link(u.path(strings.TrimPrefix(h.Linkname, "./")), full) }, ids{-1, -1})
	default:
		return nil
	}
}

// ownerBits are what a directory needs to be filled.
const ownerBits = 0o700

// bits are an entry's permissions with setuid, setgid and sticky, without the type that some archives put there.
func bits(h *tar.Header) uint32 { return uint32(h.Mode) & modeBits }

// path is where an entry goes. Cleaning it as an absolute path first removes every ".." at the front.
func (u *unpacker) path(name string) string { return path.Join(u.dir, path.Clean("/"+name)) }

// ids are the owner that an entry gets: the archive's numbers, or -1 (unchanged) for one who may not give files away.
func (u *unpacker) ids(h *tar.Header) ids {
	if u.owners {
		return ids{h.Uid, h.Gid}
	}
	return ids{-1, -1}
}

// finish gives directories their modes and times, those below first.
func (u *unpacker) finish() error {
	for _, full := range slices.Backward(slices.Sorted(maps.Keys(u.dirs))) {
		if err := finishDir(full, u.dirs[full]); err != nil {
			return fileError(u.dirs[full].Name, err)
		}
	}
	return nil
}

// finishDir gives one directory its time and mode. It does not follow a link that a later entry put in the directory's place.
func finishDir(full string, h *tar.Header) error {
	fd, err := unix.Open(full, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ENOENT) {
		return nil // a later entry stands in its place
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Futimes(fd, []unix.Timeval{timeval(h.ModTime), timeval(h.ModTime)}); err != nil {
		return err
	}
	return unix.Fchmod(fd, bits(h))
}

// timeval is a time for Futimes, which takes microseconds.
func timeval(t time.Time) unix.Timeval { return unix.NsecToTimeval(t.UnixNano()) }

// link makes a symbolic or hard link in the place of what is there, with the folders above. A directory with entries is not replaced: the
// error is ENOTEMPTY.
func link(full string, make func() error, o ids) error {
	if err := os.MkdirAll(path.Dir(full), parentMode); err != nil {
		return err
	}
	if err := os.Remove(full); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := make(); err != nil {
		return err
	}
	return unix.Lchown(full, o.uid, o.gid)
}
