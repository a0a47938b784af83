package hook

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/forked"
	"github.com/drover-project/drover/internal/node/allocdir"
	"github.com/drover-project/drover/internal/node/artifact"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/localstate"
	"github.com/drover-project/drover/internal/node/lookups"
	"github.com/drover-project/drover/internal/node/taskapi"
	"github.com/drover-project/drover/internal/taskenv"
)

// Request is what a hook works on; it may add to Env and Mounts.
type Request struct {
	Node  *drover.Node
	Alloc *drover.Allocation
	// Group and Task are those of Alloc's job. Hooks must not change them: other goroutines read them.
	Group *drover.TaskGroup
	Task  *drover.Task
	// Dir makes the allocation's folders; Dirs are their paths on the machine.
	Dir    allocdir.Dir
	Dirs   driver.Dirs
	Driver driver.Driver
	Env    *taskenv.Env
	Mounts []driver.Mount
	// Devices are those that the task was given.
	Devices driver.Devices
	// Tokens is how long the task's tokens are good, by the names of its identities.
	Tokens map[string]localstate.Life
	// Live are the task's templates, once rendered. nil: it has none.
	Live *Live
	// API is the task's socket. nil: it has none.
	API *taskapi.Socket
	// Yield says that the hook waits for what others have to do: until then it is no start under way. nil: nobody cares.
	Yield func()
	// Emit adds an event to the task's history. It does not wait until control has heard of it.
	Emit func(*drover.TaskEvent)
}

// EnvDirs are the folders that the task's variables name.
func EnvDirs(d driver.Dirs) taskenv.Dirs {
	return taskenv.Dirs{Shared: d.Shared, Local: d.Local, Secrets: d.Secrets}
}

// Prestart is a hook before a task's start.
type Prestart interface {
	// Name identifies the hook in errors, and in what is stored of a task; a new name runs it again after an agent's
	// update.
	Name() string
	// Once: when it succeeded it is not run again at a restart of the task.
	Once() bool
	// Prestart may return a *Failure to say more about an error; else the start is tried again under the policy.
	Prestart(ctx context.Context, r *Request) error
}

// Failure is a prestart error with its task event.
type Failure struct {
	Type        string // task event; "" = Setup Failure
	Recoverable bool
	Err         error
}

// Error returns the reason.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the reason.
func (f *Failure) Unwrap() error { return f.Err }

// Settings are the node's own limits for hooks.
type Settings struct {
	Artifacts *artifact.Fetcher // nil: for tasks without any
	Evaluator Evaluator         // for templates
	Signer    Signer            // of tasks' tokens; nil: there are none
	Lookups   *lookups.Watcher  // of what templates ask; nil: nobody answers
	TaskAPI   *taskapi.API      // of tasks' sockets; nil: there are none
	Devices   Devices           // of the machine; nil: there are none
	// Templates says what templates may call, and how long their changes wait.
	Templates TemplateRules
	Clock     clock.Clock // for what is waited for
}

// Standard returns the prestart hooks in order.
func Standard(s Settings) []Prestart {
	// Validation comes first because it is cheap. Folders come before all that writes into them, and templates last, so
	// that they may read artifacts and tokens.
	return []Prestart{
		validate{},
		taskDir{},
		identities{s.Signer},
		taskAPI{s.TaskAPI},
		dispatchPayload{},
		volumes{},
		devices{s.Devices},
		artifacts{s.Artifacts},
		templates{s},
	}
}

// Run runs the hooks that are not done, and returns what is done now. done is not changed.
func Run(ctx context.Context, hooks []Prestart, r *Request, done map[string]bool) (map[string]bool, error) {
	now := map[string]bool{}
	for _, h := range hooks {
		if h.Once() && done[h.Name()] {
			now[h.Name()] = true
			continue
		}
		if err := h.Prestart(ctx, r); err != nil {
			var f *Failure
			if errors.As(err, &f) || ctx.Err() != nil {
				return now, err
			}
			return now, fmt.Errorf("prestart hook %q failed: %w", h.Name(), err)
		}
		if h.Once() {
			now[h.Name()] = true
		}
	}
	return now, nil
}

// place is where a job's path leads: a root that cannot be left, and the path in it. Relative paths start at the
// task's folder; nothing outside the allocation's folder can be named.
func (r *Request) place(path string) (root *os.Root, rel string, err error) {
	path = r.Env.Replace(path)
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.Dirs.Task, path)
	}
	for inside, host := range map[string]string{"/alloc": r.Dirs.Shared, "/local": r.Dirs.Local, "/secrets": r.Dirs.Secrets} {
		if path == inside || strings.HasPrefix(path, inside+"/") { // as the task sees it
			path = filepath.Join(host, strings.TrimPrefix(path, inside))
			break
		}
	}
	rel, err = filepath.Rel(r.Dirs.Alloc, path)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, "", &Failure{Err: drover.Errorf(drover.Invalid, "path %q: escapes the allocation's folder", path)}
	}
	root, err = os.OpenRoot(r.Dirs.Alloc)
	return root, rel, err
}

// writeFile makes parents and replaces the file in one step.
func writeFile(root *os.Root, rel string, data []byte, perm os.FileMode) error {
	return writeOwned(root, rel, data, perm, os.Getuid())
}

// writeOwned is writeFile for a file of the user.
func writeOwned(root *os.Root, rel string, data []byte, perm os.FileMode, uid int) error {
	if err := makeParents(root, rel); err != nil {
		return err
	}
	// A reader sees the old or the new file, never a part. A file of that name left by a crash is removed first.
	temp := rel + ".drover-tmp"
	_ = root.Remove(temp)
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if chmodErr := f.Chmod(perm); err == nil {
		err = chmodErr
	}
	if err == nil && uid != os.Getuid() {
		err = f.Chown(uid, -1)
	}
	if closeErr := forked.Close(f); err == nil {
		err = closeErr
	}
	if err == nil {
		err = root.Rename(temp, rel)
	}
	if err != nil {
		_ = root.Remove(temp)
	}
	return err
}

// makeParents makes the missing folders above rel, open to every user: tasks run as users of their own choice.
func makeParents(root *os.Root, rel string) error {
	if parent := filepath.Dir(rel); parent != "." {
		return root.MkdirAll(parent, 0o777)
	}
	return nil
}
