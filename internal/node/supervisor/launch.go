package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/supervisor/spawn"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

const (
	initLog      = "log" // drover-init's own output in StateDir
	logTail      = 4096  // bytes of it that go into an error
	listenQueue  = 16
	processTitle = "drover-init"
)

// launchedIn bounds what takes a few milliseconds, from the fork to the supervisor's greeting: a start that hangs is given
// up, and tried again by who wanted it.
const launchedIn = 20 * time.Second

// Launch starts a drover-init and connects to it. It is in its own session and outlives the agent. Errors say what
// the script or the start ran into.
func Launch(ctx context.Context, cfg LaunchConfig, opts Options) (*Client, error) {
	if err := os.MkdirAll(cfg.StateDir, 0o700); err != nil {
		return nil, fmt.Errorf("making the supervisor's folder: %w", err)
	}
	p, config, err := start(cfg)
	if err != nil {
		return nil, fmt.Errorf("starting the supervisor: %w", err)
	}
	bounded, cancel := opts.Clock.WithTimeout(ctx, launchedIn)
	defer cancel()
	if p.staged != nil {
		cfg.Forked = func(int) error { return furnish(bounded, cfg.Stage, p.staged) }
	}
	go p.reap() // ends with drover-init
	c, err := configure(bounded, cfg, opts, p.pid, config)
	if err != nil {
		how := ""
		if hungUp(err) { // a process that ends closes what it has open before anybody can collect it
			how = p.fate(bounded, opts.Clock)
		}
		_ = Bury(ctx, cfg.StateDir, opts.Clock)
		p.kill() // its id was not noted
		return nil, fmt.Errorf("starting the supervisor: %w%s%s", err, how, tail(filepath.Join(cfg.StateDir, initLog)))
	}
	c.child = p
	return c, nil
}

// hungUp reports whether the error says that the other side has let go of what it had open.
func hungUp(err error) bool {
	return slices.ContainsFunc([]error{driver.ErrGone, io.EOF, io.ErrUnexpectedEOF, unix.EPIPE, unix.ECONNRESET}, func(e error) bool {
		return errors.Is(err, e)
	})
}

// furnish does the agent's part for namespaces while the child waits in them, and returns when it is drover-init.
func furnish(ctx context.Context, stage *Stage, child *spawn.Staged) error {
	script, fds, err := stage.Script(child, environment())
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, child.Interrupt)
	defer stop()
	return child.Run(script, fds)
}

// configure lets a started drover-init go on, and connects.
func configure(ctx context.Context, cfg LaunchConfig, opts Options, pid int, config *os.File) (*Client, error) {
	defer config.Close()
	proc := process{pid, startTime(pid)}
	if err := proc.write(cfg.StateDir); err != nil {
		return nil, err
	}
	if cfg.Forked != nil {
		if err := cfg.Forked(pid); err != nil {
			return nil, err
		}
	}
	boot := cfg.boot()
	if _, err := config.Write(boot.Encode()); err != nil {
		return nil, fmt.Errorf("configuring it: %w", err)
	}
	if err := config.Close(); err != nil {
		return nil, err
	}
	conn, err := dial(SocketPath(cfg.StateDir))
	if err != nil {
		return nil, err
	}
	return connect(ctx, conn, proc, opts)
}

// boot is the configuration as drover-init gets it.
func (cfg *LaunchConfig) boot() wire.Boot {
	boot := wire.Boot{
		ID: cfg.ID, LogTask: cfg.Log.Task, LogMaxFiles: cfg.Log.MaxFiles, LogMaxSize: cfg.Log.MaxFileSize,
		UID: cfg.User.UID, GID: cfg.User.GID, Groups: cfg.User.Groups, WorkDir: cfg.WorkDir, Env: cfg.Env, Grace: cfg.Grace, Drop: cfg.Drop,
		CgroupNamespace: cfg.CgroupNamespace, Ambient: cfg.Ambient,
	}
	if cfg.LogDir == nil {
		boot.LogTask = ""
	}
	return boot
}

// start starts the process. It waits for its configuration, which goes into the returned file.
func start(cfg LaunchConfig) (*Child, *os.File, error) {
	listener, err := cfg.listen()
	if err != nil {
		return nil, nil, err
	}
	defer listener.Close()
	null, err := open(os.DevNull, unix.O_RDWR)
	if err != nil {
		return nil, nil, err
	}
	defer null.Close()
	log, err := open(filepath.Join(cfg.StateDir, initLog), unix.O_CREAT|unix.O_WRONLY|unix.O_APPEND)
	if err != nil {
		return nil, nil, err
	}
	defer log.Close()
	r, w, err := pipe()
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	var p *Child
	err = withinNetNS(cfg.NetNS, func() error {
		p, err = startProcess(cfg, attributes(cfg, null, log, listener, r))
		return err
	})
	if err != nil {
		_ = w.Close()
		return nil, nil, err
	}
	return p, w, nil
}

// startProcess starts the binary in the agent's namespaces, or a staged child that still waits for its script.
func startProcess(cfg LaunchConfig, attr *os.ProcAttr) (*Child, error) {
	if cfg.Stage == nil {
		p, err := os.StartProcess(cfg.Binary, []string{processTitle}, attr)
		if err != nil {
			return nil, err
		}
		return &Child{pid: p.Pid, process: p, gone: make(chan struct{})}, nil
	}
	program, done, err := cfg.program()
	if err != nil {
		return nil, fmt.Errorf("opening the supervisor: %w", err)
	}
	defer done()
	stage := spawn.Stage{Program: int(program.Fd()), Namespaces: cfg.Stage.Namespaces, Unshare: cfg.Stage.Unshare}
	for _, f := range attr.Files {
		stage.Files = append(stage.Files, int(f.Fd()))
	}
	if cfg.Stage.Cgroup != nil {
		stage.Cgroup = int(cfg.Stage.Cgroup.Fd())
	}
	fork := spawn.StartStaged
	if cfg.Stage.Bare {
		fork = spawn.StartBare
	}
	child, err := fork(stage)
	runtime.KeepAlive(attr)
	if err != nil {
		return nil, err
	}
	return &Child{pid: child.Pid, staged: child, gone: make(chan struct{})}, nil
}

// program opens what a stage executes; the caller calls done.
func (cfg *LaunchConfig) program() (f *os.File, done func(), err error) {
	if cfg.Stage.Hidden {
		f, err = hidden(cfg.Binary)
		return f, func() {}, err
	}
	f, err = open(cfg.Binary, unix.O_RDONLY)
	return f, func() { _ = f.Close() }, err
}

// environment is drover-init's own. Nobody profiles it, yet without the last setting its first allocation would be sampled, into a table
// of 1.4 MB.
func environment() []string {
	return []string{"GOMAXPROCS=1", "GOGC=25", "GODEBUG=madvdontneed=1,profstackdepth=0"}
}

// attributes are the child's folder, environment and descriptors; their order is that of wire's constants (ListenerFD and those after
// it).
func attributes(cfg LaunchConfig, null, log, listener, config *os.File) *os.ProcAttr {
	logDir := cfg.LogDir
	if logDir == nil {
		logDir = null
	}
	dir := cfg.Dir
	if dir == "" {
		dir = "/"
	}
	return &os.ProcAttr{
		Dir: dir, Env: environment(), Sys: &syscall.SysProcAttr{Setsid: true},
		Files: []*os.File{null, log, log, listener, config, logDir},
	}
}

// open and pipe make files that are not in the runtime's poller, which costs more than to open them: they are for the
// child.
func open(path string, flags int) (*os.File, error) {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// pipe makes the pipe of the configuration, which both ends lose at an exec.
func pipe() (r, w *os.File, err error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, fmt.Errorf("making a pipe: %w", err)
	}
	return os.NewFile(uintptr(p[0]), "configuration"), os.NewFile(uintptr(p[1]), "configuration"), nil
}

// listen makes the socket, behind a link where the shelf says so.
func (cfg *LaunchConfig) listen() (*os.File, error) {
	if cfg.Shelf != nil {
		return cfg.Shelf.sockets.listen(cfg.StateDir)
	}
	return listen(SocketPath(cfg.StateDir))
}

// listen makes the socket before the supervisor starts: connecting never has to be tried again.
func listen(socket string) (*os.File, error) {
	dir, name, err := openParent(socket)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return listenIn(dir, name)
}

// listenIn goes through the opened folder: see dial.
func listenIn(dir *os.File, name string) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	address := &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name)}
	err = unix.Bind(fd, address)
	if errors.Is(err, unix.EADDRINUSE) { // one of an earlier start
		if err = unix.Unlinkat(int(dir.Fd()), name, 0); err == nil {
			err = unix.Bind(fd, address)
		}
	}
	if err == nil {
		err = unix.Listen(fd, listenQueue)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, drover.Errorf(drover.Internal, "listening at %s: %w", filepath.Join(dir.Name(), name), err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// tail returns the end of drover-init's log for an error message.
func tail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Size() > logTail {
		_, _ = f.Seek(-logTail, io.SeekEnd)
	}
	b, _ := io.ReadAll(f)
	if text := strings.TrimSpace(string(b)); text != "" {
		return " (" + text + ")"
	}
	return ""
}
