package fake

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
)

// file is one in memory. It is never changed, only replaced.
type file struct {
	data  []byte
	mode  uint32
	owner string
	dir   bool
	at    time.Time
}

// files is a task's file system.
type files struct {
	clock clock.Clock
	mu    sync.Mutex
	byAbs map[string]*file // by clean absolute path; guarded by mu
}

var _ execution.Files = (*files)(nil)

// newFiles returns a file system with nothing but the root directory.
func newFiles(c clock.Clock) *files {
	return &files{clock: c, byAbs: map[string]*file{"/": {dir: true, mode: 0o755, owner: "root", at: c.Now()}}}
}

// abs resolves a path; relative ones start at the root, since fake tasks have no working directory for files.
func abs(p string) string { return path.Join("/", p) }

// find returns the file of a path, nil if there is none. What it returns may be read without mu, because files are only replaced.
func (f *files) find(p string) *file {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byAbs[abs(p)]
}

// describe makes the answer of List and Read for a file; the owner's name stands for its group too.
func describe(name string, x *file) execution.FileInfo {
	info := execution.FileInfo{Path: name, Type: "-", Size: int64(len(x.data)), Mode: x.mode, Owner: x.owner, Group: x.owner, ModTime: x.at}
	if x.dir {
		info.Type = "d"
	}
	return info
}

// List implements execution.Files.
func (f *files) List(_ context.Context, r execution.FileRequest) ([]execution.FileInfo, error) {
	root := abs(r.Path)
	top := f.find(root)
	if top == nil {
		return nil, drover.Errorf(drover.NotFound, "no such file or directory: %q", r.Path)
	}
	if !top.dir {
		return []execution.FileInfo{describe(path.Base(root), top)}, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	list := []execution.FileInfo{}
	// Keys are sorted, so an entry's folder comes before it, as in a walk.
	for _, p := range slices.Sorted(maps.Keys(f.byAbs)) {
		rest, below := strings.CutPrefix(p, strings.TrimSuffix(root, "/")+"/")
		if below && rest != "" && (r.Recursive || !strings.Contains(rest, "/")) {
			list = append(list, describe(rest, f.byAbs[p]))
		}
	}
	return list, nil
}

// Read implements execution.Files.
func (f *files) Read(_ context.Context, r execution.FileRequest) (execution.FileInfo, io.ReadCloser, error) {
	x := f.find(r.Path)
	if x == nil {
		return execution.FileInfo{}, nil, drover.Errorf(drover.NotFound, "no such file or directory: %q", r.Path)
	}
	if x.dir {
		return execution.FileInfo{}, nil, drover.Errorf(drover.Invalid, "is a directory: %q", r.Path)
	}
	data := x.data[min(r.Offset, int64(len(x.data))):]
	if r.Length > 0 {
		data = data[:min(r.Length, int64(len(data)))]
	}
	return describe(path.Base(r.Path), x), io.NopCloser(bytes.NewReader(data)), nil
}

// Apply implements execution.Files.
func (f *files) Apply(_ context.Context, changes []execution.FileChange) error {
	for _, c := range changes {
		if err := f.apply(c); err != nil {
			return err
		}
	}
	return nil
}

// apply makes one change. Its checks and defaults are those of the supervisor's files, which drivertest compares.
func (f *files) apply(c execution.FileChange) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	owner := c.Owner
	if owner == "" {
		owner = "root"
	}
	p := abs(c.Path)
	switch {
	case c.Path == "":
		return drover.Errorf(drover.Invalid, "a change needs a path")
	case c.Delete:
		f.remove(p)
	case c.Mkdir:
		f.parents(p)
		f.byAbs[p] = &file{dir: true, mode: mode(c.Mode, 0o1777), owner: owner, at: f.clock.Now()}
	case c.Write:
		if old := f.byAbs[p]; old != nil && old.dir {
			return drover.Errorf(drover.Invalid, "is a directory: %q", c.Path)
		}
		f.parents(p)
		f.byAbs[p] = &file{data: bytes.Clone(c.Data), mode: mode(c.Mode, 0o744), owner: owner, at: f.clock.Now()}
	default:
		return drover.Errorf(drover.Invalid, "a change is exactly one of delete, mkdir and write: %q", c.Path)
	}
	return nil
}

// mode returns the mode that was asked for, or the default for 0, which requests cannot tell from a mode of 0.
func mode(m, otherwise uint32) uint32 {
	if m == 0 {
		return otherwise
	}
	return m
}

// remove deletes a tree, or with a final "*" all that is not hidden. Caller holds mu.
func (f *files) remove(p string) {
	glob := path.Base(p) == "*"
	dir := path.Dir(p)
	for q := range f.byAbs {
		if glob {
			rest, below := strings.CutPrefix(q, strings.TrimSuffix(dir, "/")+"/")
			if below && rest != "" && !strings.HasPrefix(rest, ".") {
				delete(f.byAbs, q)
			}
		} else if q == p || strings.HasPrefix(q, p+"/") {
			delete(f.byAbs, q)
		}
	}
}

// parents makes the folders above. Caller holds mu.
func (f *files) parents(p string) {
	for d := path.Dir(p); f.byAbs[d] == nil; d = path.Dir(d) {
		f.byAbs[d] = &file{dir: true, mode: 0o755, owner: "root", at: f.clock.Now()}
	}
}

// Write implements execution.Files.
func (f *files) Write(_ context.Context, change execution.FileChange, r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return drover.Errorf(drover.CodeOf(err), "reading what is to be written: %w", err)
	}
	change.Data, change.Write = data, true
	return f.apply(change)
}

// Archive implements execution.Files.
func (f *files) Archive(ctx context.Context, r execution.FileRequest) (io.ReadCloser, error) {
	r.Recursive = true
	list, err := f.List(ctx, r)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, i := range list {
		x := f.find(path.Join(r.Path, i.Path))
		h := &tar.Header{Name: i.Path, Mode: int64(i.Mode), Size: i.Size, Typeflag: tar.TypeReg, ModTime: i.ModTime}
		if i.Type == "d" {
			h.Typeflag, h.Name = tar.TypeDir, i.Path+"/"
		}
		err := w.WriteHeader(h)
		if err == nil && x != nil {
			_, err = w.Write(x.data)
		}
		if err != nil {
			return nil, err
		}
	}
	return io.NopCloser(&b), w.Close()
}

// Extract implements execution.Files.
func (f *files) Extract(ctx context.Context, r execution.FileRequest, archive io.Reader) error {
	t := tar.NewReader(archive)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return drover.Errorf(drover.Invalid, "reading the archive: %w", err)
		}
		c := execution.FileChange{Path: abs(r.Path) + path.Join("/", h.Name), Mode: uint32(h.Mode), Mkdir: h.Typeflag == tar.TypeDir}
		if c.Mkdir {
			err = f.Apply(ctx, []execution.FileChange{c})
		} else {
			err = f.Write(ctx, c, t)
		}
		if err != nil {
			return err
		}
	}
}
