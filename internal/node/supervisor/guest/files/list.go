package files

import (
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/guest/account"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// A listing's bounds. Those of entries and depth keep a hostile tree from taking the guest's memory and stack; listBuffer is how many
// bytes go out at once.
const (
	maxListed  = 1 << 20 // entries
	maxDepth   = 512
	listBuffer = 32 << 10
)

// List writes the descriptions of a directory's entries to w, one after the other; of anything else its one entry.
// Errors: NotFound, Forbidden, Invalid, TooLarge above a million entries.
func (s *Service) List(w io.Writer, req execution.FileRequest) error {
	dir, err := s.absolute(req.Path)
	if err != nil {
		return err
	}
	l := &lister{s: s, w: w, names: s.accounts.Read().Names(), recursive: req.Recursive}
	return s.as(req.Privileged, func() error {
		var st unix.Stat_t
		if err := unix.Stat(asDirectory(req.Path, dir), &st); err != nil {
			return fileError(req.Path, err)
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			err = l.entry(dir, path.Base(dir))
		} else {
			err = l.directory(dir, "", 0)
		}
		if err != nil {
			return fileError(req.Path, err)
		}
		return l.flush()
	})
}

// lister walks a tree.
// lister walks a tree; count is over all of it.
type lister struct {
	s         *Service
	w         io.Writer
	names     *account.Names
	recursive bool
	e         wire.Encoder
	count     int
}

// directory lists dir. Below the one that was asked for, what cannot be read is left out, as ls does.
func (l *lister) directory(dir, prefix string, depth int) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	entries, err := f.Readdirnames(-1)
	_ = f.Close()
	if err != nil && len(entries) == 0 {
		return err
	}
	slices.Sort(entries)
	for _, name := range entries {
		if l.s.isDraft(dir+"/"+name, name) {
			continue
		}
		if err := l.entry(dir+"/"+name, prefix+name); err != nil {
			return err
		}
		if !l.recursive || depth >= maxDepth {
			continue
		}
		var st unix.Stat_t
		if unix.Lstat(dir+"/"+name, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			err := l.directory(dir+"/"+name, prefix+name+"/", depth+1)
			// These two are about the whole listing. Any other error is that of a directory below, which is only left out.
			if drover.CodeOf(err) == drover.TooLarge || errors.Is(err, io.ErrClosedPipe) {
				return err
			}
		}
	}
	return nil
}

// entry encodes one description and sends what has gathered when it is enough. It fails above maxListed or when nobody reads any more.
func (l *lister) entry(full, name string) error {
	info, err := describe(l.names, full, name)
	if err != nil {
		return nil //nolint:nilerr // it was removed meanwhile
	}
	if l.count++; l.count > maxListed {
		return drover.Errorf(drover.TooLarge, "more than %d files", maxListed)
	}
	l.e.FileInfo(info)
	if len(l.e.B) >= listBuffer {
		return l.flush()
	}
	return nil
}

// flush sends what is encoded, and keeps the buffer for what follows.
func (l *lister) flush() error {
	_, err := l.w.Write(l.e.B)
	l.e.B = l.e.B[:0]
	return err
}

// describe is what lstat says of a file.
func describe(n *account.Names, full, name string) (execution.FileInfo, error) {
	var st unix.Stat_t
	if err := unix.Lstat(full, &st); err != nil {
		return execution.FileInfo{}, err
	}
	info := fileInfo(n, &st, name)
	if info.Type == "l" {
		info.LinkTarget, _ = os.Readlink(full)
	}
	return info, nil
}

// fileInfo translates a stat. Path is the name that the caller gives, relative to what was listed; a link's target is added by describe.
func fileInfo(n *account.Names, st *unix.Stat_t, name string) execution.FileInfo {
	return execution.FileInfo{
		Path: name, Type: typeLetter(st.Mode), Size: st.Size, Mode: st.Mode & 0o7777, UID: int(st.Uid), GID: int(st.Gid),
		Owner: n.User(st.Uid), Group: n.Group(st.Gid), ModTime: time.Unix(st.Mtim.Sec, st.Mtim.Nsec),
	}
}

// typeLetter is the letter that ls -l begins a line with.
func typeLetter(mode uint32) string {
	switch mode & syscall.S_IFMT {
	case syscall.S_IFDIR:
		return "d"
	case syscall.S_IFLNK:
		return "l"
	case syscall.S_IFIFO:
		return "p"
	case syscall.S_IFSOCK:
		return "s"
	case syscall.S_IFCHR:
		return "c"
	case syscall.S_IFBLK:
		return "b"
	default:
		return "-"
	}
}
