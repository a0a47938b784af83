package files

import (
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strings"
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
func (s *Files) List(w io.Writer, req execution.FileRequest) error {
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

// lister walks a tree; count is over all of it.
type lister struct {
	s         *Files
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
		info.LinkTarget, _ = linkTarget(full)
	}
	return info, nil
}

// linkTarget is where a link leads, if the thread's file user may know. Of the links of a process below /proc the kernel tells whoever
// may trace that process. It asks this of the supervisor, which may trace itself, and which may have the right to trace every process.
// A user of the guest is told only of what they own, as by ls. The link is opened once, for the guest may replace its directory.
func linkTarget(full string) (string, error) {
	asker := account.FileUser()
	if asker == 0 {
		return os.Readlink(full)
	}
	fd, err := unix.Open(full, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = unix.Close(fd) }()
	var b [unix.PathMax]byte
	n, err := unix.Readlinkat(fd, "", b[:])
	if err != nil {
		return "", err
	}
	target := string(b[:n])
	// The links of a process lead to an absolute path, or are named like socket:[1234]. Others in /proc, such as self, are for everybody.
	if !strings.HasPrefix(target, "/") && !strings.Contains(target, ":") {
		return target, nil
	}
	var fs unix.Statfs_t
	var st unix.Stat_t
	if err := errors.Join(unix.Fstatfs(fd, &fs), unix.Fstat(fd, &st)); err != nil {
		return "", err
	}
	if fs.Type == unix.PROC_SUPER_MAGIC && int(st.Uid) != asker {
		return "", unix.EACCES
	}
	return target, nil
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
