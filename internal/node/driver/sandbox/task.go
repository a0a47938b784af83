package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/image"
	"github.com/drover-project/drover/internal/node/supervisor/sandboxsetup"
)

// Task is a sandbox that another driver asks for, whose own keys say what is in it.
type Task struct {
	Driver  string   // whose task it is
	Argv    []string // none for a warm runner
	WorkDir string   // default "/"
	User    string   // a user of the image; default root
	// Trees are parts of the machine that are its root, by path: where they are seen.
	Trees map[string]string
	Caps  uint64 // of its root, as bits; it has no others
	// Ambient gives them to programs of other users, too.
	Ambient bool
	Pids    int64 // processes and threads
	// HostIPC shares the machine's System V IPC and message queues.
	HostIPC bool
	// AllowHostNetwork: a group that asks for the machine's network gets it. Otherwise such a group is on the bridge.
	AllowHostNetwork bool
	// Note is kept with the task's state, for NoteOf.
	Note string
}

// NoteOf is the note of a task's state; "" if it has none.
func NoteOf(state driver.State) string {
	var s stored
	_ = json.Unmarshal(state.Data, &s) // one that cannot be read has no note
	return s.Note
}

// SharesMachine reports whether the task would be in the machine's network.
func (d *Driver) SharesMachine(spec *driver.Spec, t Task) bool {
	mode, err := d.chooseNetwork(taskConfig{task: &t}, spec)
	return err == nil && mode == networkHost
}

// StartTask is Start for a task of another driver. Attach and its handle do as for sandboxes. Errors: *driver.StartError.
func (d *Driver) StartTask(ctx context.Context, spec driver.Spec, t Task) (driver.Handle, error) {
	c := taskConfig{task: &t, pids: t.Pids, workDir: t.WorkDir}
	if c.workDir == "" {
		c.workDir = "/"
	}
	if len(t.Argv) > 0 {
		c.command, c.args = t.Argv[0], t.Argv[1:]
	}
	spec.User = t.User
	return d.started(d.start(ctx, &spec, c))
}

// Caps returns capabilities as bits. Errors: those that nobody can have in a sandbox, by name.
func Caps(names []string) (mask uint64, err error) {
	for _, name := range names {
		n, known := capNumbers[name]
		if !known {
			return 0, drover.Errorf(drover.Invalid, "%q is no capability that means anything in a namespace of a task's own", name)
		}
		mask |= 1 << n
	}
	return mask, nil
}

// KnownCaps lists the capabilities that Caps knows.
func KnownCaps() []string {
	var names []string
	for name := range capNumbers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// maxTaskEntries bounds what of a task's folder is shown piece by piece.
const maxTaskEntries = 256

// addTaskFolder shows what lies in the task's folder beside the folders that every task has, where a chroot would have it: below /.
// Templates and artifacts can be put there. /tmp is the task's on disk.
func addTaskFolder(c *sandboxsetup.Config, m *mounter, spec *driver.Spec, rootfs *image.Rootfs) error {
	entries, err := os.ReadDir(spec.Dirs.Task)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	left := maxTaskEntries
	for _, e := range entries {
		switch name := e.Name(); name {
		case "local", "secrets", "private", "alloc":
		default:
			if err := addEntry(c, m, filepath.Join(spec.Dirs.Task, name), "/"+name, rootfs, &left); err != nil {
				return err
			}
		}
	}
	return nil
}

// addEntry shows a file, or a directory as a whole unless the image has one at its place: then what is in it.
func addEntry(c *sandboxsetup.Config, m *mounter, from, target string, rootfs *image.Rootfs, left *int) error {
	info, err := os.Lstat(from)
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return err // a link could lead anywhere
	}
	if *left--; *left < 0 {
		return drover.Errorf(drover.Invalid, "the task's folder has more than %d files where the machine's are seen: put them below local/",
			maxTaskEntries)
	}
	if !info.IsDir() || target == "/tmp" || !inImage(rootfs, target) {
		return addMount(c, m, tree{path: from}, target)
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := addEntry(c, m, filepath.Join(from, e.Name()), path.Join(target, e.Name()), rootfs, left); err != nil {
			return err
		}
	}
	return nil
}

// inImage reports whether the image has something at a path.
func inImage(rootfs *image.Rootfs, target string) bool {
	for _, b := range rootfs.Binds {
		if rest, below := strings.CutPrefix(target+"/", b.Target+"/"); below {
			_, err := os.Lstat(filepath.Join(b.Source, rest))
			return err == nil
		}
	}
	return slices.ContainsFunc(rootfs.Lowers, func(dir string) bool {
		_, err := os.Lstat(filepath.Join(dir, target))
		return err == nil
	})
}
