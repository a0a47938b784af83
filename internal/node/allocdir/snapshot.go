package allocdir

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/drover-project/drover"
)

// Bounds of what is taken over from another node.
const (
	mostEntries = 1 << 20
	mostName    = 4096 // bytes of a path or of a link's target
	// mostFolders is how many bytes the paths of all folders have, which are held in memory until the last file is there.
	mostFolders = 64 << 20
)

// Snapshot writes what another node takes over as a tar: folders, files and links, with their modes and owners. Sockets, pipes and
// devices are left out. No link is followed, and nothing outside of the allocation's folder is read, whatever its tasks left there.
func (d Dir) Snapshot(ctx context.Context, w io.Writer, tasks []string) error {
	root, err := os.OpenRoot(d.Path())
	if err != nil {
		return err
	}
	defer root.Close()
	t := tar.NewWriter(w)
	for _, part := range carried(tasks) {
		if info, err := root.Lstat(part); err != nil || !info.IsDir() {
			continue
		}
		err := fs.WalkDir(root.FS(), part, func(name string, _ fs.DirEntry, err error) error {
			if err == nil {
				err = ctx.Err()
			}
			if err == nil {
				err = archive(t, root, name)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("reading %s: %w", part, err)
		}
	}
	return t.Close()
}

// archive writes an entry.
func archive(t *tar.Writer, root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	link := ""
	switch mode := info.Mode(); {
	case mode.IsRegular(), mode.IsDir():
	case mode&fs.ModeSymlink != 0:
		if link, err = root.Readlink(name); err != nil {
			return err
		}
	default:
		return nil
	}
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	h.Name, h.Uname, h.Gname = name, "", ""
	if !info.Mode().IsRegular() {
		return t.WriteHeader(h)
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	now, err := f.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(info, now) {
		return drover.Errorf(drover.Conflict, "%s was replaced meanwhile", name)
	}
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.CopyN(t, f, h.Size)
	return err
}

// Adopt takes over what a Snapshot of another node has: all of it, or nothing with an error. most bounds the bytes of its files. Names that
// lead out of the folders that are taken over, hard links and devices are refused, and nothing is written through a link that leads out.
// Set-user-id bits are dropped. The folders are there, and empty.
func (d Dir) Adopt(r io.Reader, tasks []string, most int64) (err error) {
	staging := filepath.Join(d.Path(), ".migrating")
	defer func() { err = errors.Join(err, os.RemoveAll(staging)) }()
	if err := os.RemoveAll(staging); err != nil {
		return err
	}
	a := adoption{most: most, parts: map[string]*os.Root{}}
	defer a.close()
	for _, part := range carried(tasks) {
		at := filepath.Join(staging, part)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return err
		}
		if err := makeDir(at, 0o777); err != nil { // as it is where the other node has none
			return err
		}
		if a.parts[part], err = os.OpenRoot(filepath.Join(staging, part)); err != nil {
			return err
		}
	}
	if err := a.read(tar.NewReader(r)); err != nil {
		return err
	}
	return d.take(staging, tasks)
}

// adoption is a snapshot that is being unpacked.
type adoption struct {
	most    int64 // bytes that may still come
	entries int
	names   int // bytes of the paths of folders
	parts   map[string]*os.Root
	folders []folder // whose modes are set when all is in them
}

type folder struct {
	root *os.Root
	name string
	mode fs.FileMode
}

func (a *adoption) close() {
	for _, r := range a.parts {
		if r != nil {
			_ = r.Close() // it was only looked up in
		}
	}
}

func (a *adoption) read(t *tar.Reader) error {
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading the snapshot: %w", err)
		}
		if a.entries++; a.entries > mostEntries {
			return drover.Errorf(drover.Invalid, "the snapshot has more than %d files", mostEntries)
		}
		if err := a.entry(t, h); err != nil {
			return fmt.Errorf("snapshot: %q: %w", h.Name[:min(len(h.Name), mostName)], err)
		}
	}
	for _, f := range slices.Backward(a.folders) {
		if err := f.root.Chmod(f.name, f.mode); err != nil {
			return err
		}
	}
	return nil
}

// place finds the folder that an entry belongs to, and its name there.
func (a *adoption) place(name string) (*os.Root, string, error) {
	if len(name) > mostName {
		return nil, "", drover.Errorf(drover.Invalid, "the name has more than %d bytes", mostName)
	}
	clean := path.Clean(name)
	for part, root := range a.parts {
		if clean == part {
			return root, ".", nil
		}
		if rel, ok := strings.CutPrefix(clean, part+"/"); ok && filepath.IsLocal(rel) {
			return root, rel, nil
		}
	}
	return nil, "", drover.Errorf(drover.Invalid, "is not in what is taken over")
}

func (a *adoption) entry(t *tar.Reader, h *tar.Header) error {
	root, name, err := a.place(h.Name)
	if err != nil {
		return err
	}
	mode := fs.FileMode(h.Mode & 0o777)
	if h.Mode&0o1000 != 0 {
		mode |= fs.ModeSticky
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if a.names += len(name); a.names > mostFolders {
			return drover.Errorf(drover.Invalid, "the paths of the folders have more than %d bytes together", mostFolders)
		}
		if err := root.Mkdir(name, 0o700); err != nil && (name != "." || !errors.Is(err, fs.ErrExist)) {
			return err
		}
		a.folders = append(a.folders, folder{root, name, mode})
	case tar.TypeReg:
		if a.most -= h.Size; h.Size < 0 || a.most < 0 {
			return drover.Errorf(drover.Invalid, "there is more than the group's ephemeral_disk has room for")
		}
		return writeFile(root, name, t, h, mode)
	case tar.TypeSymlink:
		if len(h.Linkname) > mostName {
			return drover.Errorf(drover.Invalid, "its target has more than %d bytes", mostName)
		}
		if err := root.Symlink(h.Linkname, name); err != nil {
			return err
		}
	default:
		return drover.Errorf(drover.Invalid, "is no file, folder or symbolic link (type %q)", h.Typeflag)
	}
	return owned(func(uid, gid int) error { return root.Lchown(name, uid, gid) }, h)
}

func writeFile(root *os.Root, name string, t io.Reader, h *tar.Header, mode fs.FileMode) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	if _, err = io.CopyN(f, t, h.Size); err == nil {
		err = owned(f.Chown, h)
	}
	if err == nil {
		err = f.Chmod(mode) // after the change of hands
	}
	return errors.Join(err, f.Close())
}

// owned gives a file to its owner, if the agent may.
func owned(give func(uid, gid int) error, h *tar.Header) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return give(h.Uid, h.Gid)
}
