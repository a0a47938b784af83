package program

import (
	"path"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/supervisor/guest/account"
	"github.com/drover-project/drover/internal/node/supervisor/guest/process"
	"github.com/drover-project/drover/internal/node/supervisor/spawn"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// defaultGrace is long enough for an agent to be restarted or upgraded.
const defaultGrace = 30 * time.Second

// Launcher is what all programs of one supervisor share.
type Launcher struct {
	Clock    clock.Clock
	Reaper   *process.Reaper
	Accounts *account.Database

	boot atomic.Pointer[wire.Boot]
}

// Boot is what the agent said of the task that is served now; it is not changed.
func (l *Launcher) Boot() *wire.Boot { return l.boot.Load() }

// Configure takes what the agent says of a task.
func (l *Launcher) Configure(boot wire.Boot) {
	if boot.Grace <= 0 {
		boot.Grace = defaultGrace
	}
	l.boot.Store(&boot)
}

// Command is a command as it was asked for.
type Command struct {
	Argv       []string
	Env        []map[string]string // later ones win, all over PATH and HOME
	Dir        string              // relative ones, and "", begin in the guest's working directory
	User       string
	Privileged bool
}

// Resolve finds the command's user, environment, directory and path. What it returns lacks descriptors and limits. Errors:
// Invalid, Forbidden, *Failure.
func (l *Launcher) Resolve(c Command) (spawn.Spec, error) {
	boot := l.Boot()
	user, home, err := l.Accounts.Resolve(boot, c.User, c.Privileged)
	if err != nil {
		return spawn.Spec{}, err
	}
	env := environment(map[string]string{"PATH": defaultPath, "HOME": home}, c.Env...)
	dir := c.Dir
	if dir == "" {
		dir = boot.WorkDir
	} else if !path.IsAbs(dir) {
		dir = path.Join(boot.WorkDir, dir)
	}
	// The program is looked up with our rights and only for its path; exec checks those of its user.
	file, errno := lookPath(c.Argv[0], dir, envValue(env, "PATH"))
	if errno != 0 {
		return spawn.Spec{}, explain(&spawn.Error{Step: spawn.StepExec, Errno: errno}, c.Argv[0], dir)
	}
	return spawn.Spec{
		Path: file, Argv: c.Argv, Env: env, Dir: dir, User: user, ResetOOM: true, Drop: boot.Drop, Ambient: boot.Ambient,
		CgroupNamespace: boot.CgroupNamespace,
	}, nil
}

// Start starts a program with its descriptors, of which it closes ours if that fails. killGroup: what is left of its
// process group is killed with it. Errors: *Failure.
func (l *Launcher) Start(s spawn.Spec, io *Stdio, killGroup bool) (*process.Child, error) {
	s.Files = io.theirs
	c, err := l.Reaper.Start(s, killGroup)
	if err != nil {
		io.CloseOurs()
		return nil, explain(err, s.Argv[0], s.Dir)
	}
	return c, nil
}
