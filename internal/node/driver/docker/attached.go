package docker

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/moby/moby/client"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/docker/dockererr"
	"github.com/drover-project/drover/internal/node/supervisor"
)

// Into a container of these runtimes a socket of the machine can be handed. Others have a kernel of their own: there
// drover-init is reached by the container's stdin and stdout, through the daemon.
var sharedKernel = []string{"runc", "io.containerd.runc.v2", "crun", "youki", "nvidia", "sysbox-runc"} // a constant

// attaches tells which of the two a runtime ("" = the daemon's default) needs.
func (d *Driver) attaches(ctx context.Context, runtime string) (bool, error) {
	if runtime == "" {
		info, err := d.daemon.get(ctx)
		if err != nil {
			return false, err
		}
		runtime = info.DefaultRuntime
	}
	return !slices.Contains(sharedKernel, runtime), nil
}

// attached is the second.
type attached struct {
	d      *Driver
	b      *box
	cfg    supervisor.LaunchConfig
	stream *stream
}

// prepare only keeps the configuration: there is no socket or folder to be made.
func (a *attached) prepare(cfg supervisor.LaunchConfig) error {
	a.cfg = cfg
	return nil
}

// first mounts the log folder, if there is one, since no descriptor of it can be handed to another kernel.
func (a *attached) first(spec *driver.Spec) first {
	f := first{args: supervisor.AttachedArgs(""), stdin: true}
	if a.cfg.LogDir != nil {
		f.source, f.target, f.writable = spec.Log.Dir, ownPath+"/logs", true
		f.args = supervisor.AttachedArgs(f.target)
	}
	return f
}

// created attaches before the start, so that nothing which drover-init says is missed.
func (a *attached) created(ctx context.Context) (err error) {
	a.stream, err = a.d.attach(ctx, a.b.id)
	return err
}

// started sends the configuration through the stream, which belongs to the client from then on. Its errors end with what drover-init
// wrote to stderr.
func (a *attached) started(ctx context.Context, user supervisor.User) (*supervisor.Client, error) {
	a.cfg.User = user
	r, err := a.d.docker.ContainerInspect(ctx, a.b.id, client.ContainerInspectOptions{})
	if err != nil {
		return nil, dockererr.Of(err)
	}
	if r.Container.State == nil || r.Container.State.Pid <= 0 {
		return nil, drover.Errorf(drover.Internal, "the container ended before it was ready%s", a.stream.said())
	}
	a.d.view(a.b, r.Container.State.Pid)
	a.b.disk.Layer, a.b.disk.Root = storedLayer(&r.Container)
	stream := a.stream
	a.stream = nil // the client's
	c, err := supervisor.StartAttached(ctx, a.cfg, stream, r.Container.State.Pid, a.d.clientOptions(a.b))
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("%w%s", err, stream.said())
	}
	return c, nil
}

func (a *attached) close() {
	if a.stream != nil {
		_ = a.stream.Close() // nothing came of it
	}
}

// reattach connects again. The daemon may be away for a while: that is Unavailable, as long as the container lives.
func (d *Driver) reattach(ctx context.Context, b *box) (*supervisor.Client, error) {
	if !supervisor.Alive(b.stateDir) {
		return nil, driver.ErrGone
	}
	ctx, cancel := d.cfg.Clock.WithTimeout(ctx, askDaemon)
	defer cancel()
	s, err := d.attach(ctx, b.id)
	var c *supervisor.Client
	if err == nil {
		c, err = supervisor.ConnectAttached(ctx, b.stateDir, s, d.clientOptions(b))
	}
	switch {
	case err == nil:
		return c, nil
	case !supervisor.Alive(b.stateDir):
		return nil, driver.ErrGone
	default:
		return nil, drover.Errorf(drover.Unavailable, "reaching the container through the docker daemon: %s", err) // not ErrGone
	}
}

// attach opens the container's stdin and stdout.
func (d *Driver) attach(ctx context.Context, id string) (*stream, error) {
	// The connection lives on: ctx is that of the request.
	r, err := d.docker.ContainerAttach(ctx, id, client.ContainerAttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		return nil, dockererr.Of(err)
	}
	return &stream{HijackedResponse: r.HijackedResponse}, nil
}

// stream is the container's stdin and stdout. Of its stderr the end is kept: it is drover-init's own.
type stream struct {
	client.HijackedResponse
	left int // of the frame that is being read

	mu   sync.Mutex
	tail []byte // guarded by mu
}

// The daemon's frames: stream, three zeros, length.
// maxTail bounds how much of drover-init's stderr is kept for an error message.
const (
	frameHeader = 8
	frameStdout = 1
	maxTail     = 4 << 10
)

// Read gives stdout.
func (s *stream) Read(p []byte) (int, error) {
	for s.left == 0 {
		var head [frameHeader]byte
		if _, err := io.ReadFull(s.Reader, head[:]); err != nil {
			return 0, err
		}
		n := int(binary.BigEndian.Uint32(head[4:]))
		if head[0] == frameStdout {
			s.left = n
			continue
		}
		text := make([]byte, min(n, maxTail))
		if _, err := io.ReadFull(s.Reader, text); err != nil {
			return 0, err
		}
		if _, err := s.Reader.Discard(n - len(text)); err != nil {
			return 0, err
		}
		s.mu.Lock()
		s.tail = append(s.tail, text...)
		s.tail = s.tail[max(0, len(s.tail)-maxTail):]
		s.mu.Unlock()
	}
	n, err := s.Reader.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}

// Write goes to stdin.
func (s *stream) Write(p []byte) (int, error) { return s.Conn.Write(p) }

// Close detaches.
func (s *stream) Close() error { return s.Conn.Close() }

// said is what drover-init complained about, to be added to an error.
func (s *stream) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tail) == 0 {
		return ""
	}
	return ": " + strings.TrimSpace(string(s.tail))
}
