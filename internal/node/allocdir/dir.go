package allocdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/node/driver"
)

// Root makes the folders of a node's allocations below a data folder.
type Root struct {
	data    string
	path    string // of the allocations' folders
	former  []Root // places of before, which have some still
	nest    *nest
	secrets *secrets // nil: on the disk
}

// NewRoot returns the folders below dataDir.
func NewRoot(dataDir string) Root {
	return Root{data: dataDir}.At(filepath.Join(dataDir, folderName), nil)
}

// folderName is that of the allocations' folder in the data folder.
const folderName = "alloc"

// Path returns the folder that holds all allocations.
func (r Root) Path() string { return r.path }

// Prepare makes the folder that holds all allocations, and <data>/supervisor.
func (r Root) Prepare() error {
	if err := os.MkdirAll(r.Path(), 0o711); err != nil {
		return fmt.Errorf("making the allocations' folder: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(r.data, "supervisor"), 0o700); err != nil {
		return fmt.Errorf("making the supervisors' folder: %w", err)
	}
	if err := r.own(); err != nil {
		return err
	}
	scatter(r.Path())
	return r.nest.clear()
}

// Dir is one allocation's folder.
type Dir struct {
	root    Root
	allocID string
}

// Dir returns an allocation's folder; it makes nothing. The id must be a UUID, as it becomes part of a path.
func (r Root) Dir(allocID string) (Dir, error) {
	if !id.Valid(allocID) {
		return Dir{}, drover.Errorf(drover.Invalid, "allocation id %q: is not a UUID", allocID)
	}
	return Dir{r.home(allocID), allocID}, nil
}

// Path returns the allocation's folder.
func (d Dir) Path() string { return filepath.Join(d.root.Path(), d.allocID) }

// Logs returns the folder of the captured output.
func (d Dir) Logs() string { return filepath.Join(d.Path(), "alloc", "logs") }

// Exists reports whether the folder is there.
func (d Dir) Exists() bool {
	info, err := os.Lstat(d.Path())
	return err == nil && info.IsDir()
}

// Build makes the shared folders; it may be called again. Nobody but the agent comes by path to what is in them, which belongs
// to whom the tasks let write there. Mounts are made by those who may; for others see Admit.
func (d Dir) Build() error {
	if !d.Exists() {
		if err := d.root.nest.hatch(d.allocID); err != nil {
			return fmt.Errorf("making the allocation's folder: %w", err)
		}
	}
	for _, p := range []struct {
		path string
		mode os.FileMode
	}{
		{filepath.Join(d.Path(), "alloc"), 0o777},
		{d.Logs(), 0o777},
		{filepath.Join(d.Path(), "alloc", "tmp"), 0o777},
		{filepath.Join(d.Path(), "alloc", "data"), 0o777},
	} {
		if err := makeDir(p.path, p.mode); err != nil {
			return err
		}
	}
	return nil
}

// BuildTask makes a task's folders; it may be called again.
func (d Dir) BuildTask(task string) error {
	if task == "alloc" || task != filepath.Base(task) || strings.HasPrefix(task, ".") {
		return drover.Errorf(drover.Invalid, "task name %q: cannot be a folder's name", task)
	}
	dirs := d.Task(task)
	for _, p := range []struct {
		path string
		mode os.FileMode
	}{
		{dirs.Task, 0o777 | os.ModeSticky}, // a sibling must not put a folder of its own in the place of one of these
		{dirs.Local, 0o777},
		{dirs.Secrets, 0o777},
		{filepath.Join(dirs.Task, "private"), 0o700},
		{filepath.Join(dirs.Task, "tmp"), 0o777 | os.ModeSticky},
	} {
		if err := makeDir(p.path, p.mode); err != nil {
			return err
		}
	}
	return nil
}

// Task returns a task's folders.
func (d Dir) Task(task string) driver.Dirs {
	path := d.Path()
	t := filepath.Join(path, task)
	return driver.Dirs{
		Alloc: path, Shared: filepath.Join(path, "alloc"), Task: t, Local: filepath.Join(t, "local"),
		Secrets: d.secrets(task), State: d.state(task),
	}
}

func (d Dir) secrets(task string) string {
	return filepath.Join(d.root.Path(), d.allocID, task, "secrets")
}

// state is where a task's supervisor has its files. Whoever starts one makes it.
func (d Dir) state(task string) string {
	return filepath.Join(d.root.data, "supervisor", d.allocID+"."+task)
}

// Remove deletes the folder, and the supervisors' ones of the tasks.
func (d Dir) Remove(tasks ...string) error {
	return errors.Join(d.RemoveState(tasks...), d.uncover(), os.RemoveAll(d.Path()))
}

// RemoveState deletes what the supervisors of the tasks left, once none is alive.
func (d Dir) RemoveState(tasks ...string) error {
	var errs []error
	for _, t := range tasks {
		errs = append(errs, os.RemoveAll(d.state(t)))
	}
	return errors.Join(errs...)
}

// makeDir makes one folder; the umask must not matter. A new one costs two calls of the system, as a job of a thousand
// allocations makes ten thousand folders.
func makeDir(path string, mode os.FileMode) error {
	err := os.Mkdir(path, mode.Perm())
	switch {
	case err == nil && mode&(0o022|os.ModeSticky) != 0:
		err = os.Chmod(path, mode)
	case errors.Is(err, fs.ErrExist):
		err = chmodIfNeeded(path, mode)
	}
	if err != nil {
		return fmt.Errorf("making the allocation's folders: %w", err)
	}
	return nil
}

// chmodIfNeeded undoes the umask. A link in the place of a folder is refused: a task of an earlier start may have put
// it there.
func chmodIfNeeded(path string, mode os.FileMode) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s: %w", path, fs.ErrExist)
	}
	if info.Mode()&(os.ModePerm|os.ModeSticky) == mode {
		return nil
	}
	return os.Chmod(path, mode)
}

// TaskBuilt reports whether a task's folders are there.
func (d Dir) TaskBuilt(task string) bool {
	dirs := d.Task(task)
	for _, p := range []string{dirs.Local, dirs.Secrets} {
		if info, err := os.Lstat(p); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}
