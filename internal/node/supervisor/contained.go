package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/node/supervisor/handover"
)

// Contained is a drover-init that a container runtime is about to start: see package handover.
type Contained struct {
	cfg    LaunchConfig
	folder string
	door   *net.UnixListener
	files  handover.Files
	config *os.File
}

const bootFolder = "boot"

// Contain prepares the agent's side. After Open the runtime starts drover-init with ContainedArgs as the container's
// first process, as root, with Folder mounted; Start waits for it. Close is needed in every case. Of cfg, what says how
// the process is started is not used.
func Contain(cfg LaunchConfig) (_ *Contained, err error) {
	c := &Contained{cfg: cfg, folder: filepath.Join(cfg.StateDir, bootFolder)}
	defer func() {
		if err != nil {
			c.Close()
			err = fmt.Errorf("preparing the supervisor: %w", err)
		}
	}()
	if err := os.MkdirAll(cfg.StateDir, 0o700); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.folder, 0o755); err != nil {
		return nil, err
	}
	if c.files.Listener, err = listen(SocketPath(cfg.StateDir)); err != nil {
		return nil, err
	}
	if c.files.Log, err = os.OpenFile(filepath.Join(cfg.StateDir, initLog), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return nil, err
	}
	if c.files.LogDir, err = detached(cfg.LogDir); err != nil {
		return nil, fmt.Errorf("opening the log folder: %w", err)
	}
	c.files.Config, c.config, err = os.Pipe()
	return c, err
}

// Open lets drover-init in. It is to be called when no other container is left that has the folder: one that an agent
// started which was killed meanwhile would knock too.
func (c *Contained) Open() (err error) {
	c.door, err = openDoor(filepath.Join(c.folder, handover.Socket))
	return err
}

// Folder is to be mounted into the container, read-only.
func (c *Contained) Folder() string { return c.folder }

// SetUser sets the default user of executions and files: in a container it may be known only when that was created.
func (c *Contained) SetUser(u User) { c.cfg.User = u }

// ContainedArgs are drover-init's arguments when Folder is mounted there.
func ContainedArgs(mounted string) []string {
	return []string{handover.Command, filepath.Join(mounted, handover.Socket)}
}

// Start waits for drover-init, hands it its descriptors, and connects. ctx should end when the container does.
func (c *Contained) Start(ctx context.Context, opts Options) (*Client, error) {
	stop := context.AfterFunc(ctx, func() { _ = c.door.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	conn, err := c.door.AcceptUnix()
	if err != nil {
		return nil, fmt.Errorf("waiting for the supervisor: %w", orCause(ctx, err))
	}
	defer func() { _ = conn.Close() }()
	// The guest, which starts later, never sees it.
	_ = c.door.Close()
	if err := os.Remove(filepath.Join(c.folder, handover.Socket)); err != nil {
		return nil, fmt.Errorf("closing the door behind the supervisor: %w", err)
	}
	stopConn := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stopConn()
	pid, err := handover.Peer(conn)
	if err == nil {
		err = handover.Send(conn, c.files)
	}
	if err == nil {
		err = handover.Result(conn)
	}
	var client *Client
	if err == nil {
		client, err = configure(ctx, c.cfg, opts, pid, c.config)
	}
	if err != nil {
		return nil, fmt.Errorf("starting the supervisor: %w%s", orCause(ctx, err), tail(filepath.Join(c.cfg.StateDir, initLog)))
	}
	return client, nil
}

// orCause is why ctx ended, if it has: the error is then only that of a connection closed for it.
func orCause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Close lets go of the agent's side; a supervisor that was started lives on. Idempotent.
func (c *Contained) Close() {
	if c.door != nil {
		_ = c.door.Close()
	}
	for _, f := range []*os.File{c.files.Listener, c.files.Log, c.files.LogDir, c.files.Config, c.config} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// openDoor listens where the container's first process will knock. Anybody may: the container's root may be mapped, and
// the folder above is the agent's.
func openDoor(socket string) (*net.UnixListener, error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	dir, name, err := openParent(socket)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	door, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name)})
	if err != nil {
		return nil, err
	}
	door.SetUnlinkOnClose(false)         // that path is gone by then
	return door, os.Chmod(socket, 0o666) // see above
}

// detached is the folder as a mount of its own that is nowhere mounted: nothing leads up from it.
func detached(dir *os.File) (*os.File, error) {
	if dir == nil {
		return os.OpenFile(os.DevNull, os.O_RDWR, 0)
	}
	tree, err := unix.OpenTree(int(dir.Fd()), "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return nil, fmt.Errorf("detaching %s: %w", dir.Name(), err)
	}
	defer unix.Close(tree)
	fd, err := unix.Openat(tree, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), dir.Name()), nil
}
