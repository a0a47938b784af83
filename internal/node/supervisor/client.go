package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
	"github.com/drover-project/drover/internal/wake"
)

// Client is a connection to one drover-init. Its methods may be called by several goroutines.
type Client struct {
	// Constant.
	opts    Options
	conn    *net.UnixConn
	process process
	child   *Child        // nil if this agent did not start it
	id      string        // that LaunchConfig gave it; set by hello
	done    chan struct{} // closed when the reader ended

	wmu sync.Mutex // serializes frames

	mu     sync.Mutex
	next   uint32           // channel; guarded by mu
	calls  map[uint32]*call // nil when the connection ended; guarded by mu
	groups map[string]Group // of executions that this client started or found; guarded by mu
	stale  map[string]Group // of executions that nobody follows; guarded by mu
}

// Connect connects to a running drover-init. Errors: driver.ErrGone when none listens any more.
func Connect(ctx context.Context, socket string, opts Options) (*Client, error) {
	conn, err := dial(socket)
	if err != nil {
		return nil, err
	}
	return connect(ctx, conn, readProcess(filepath.Dir(socket)), opts)
}

// connect greets the supervisor at the other end, and owns the connection.
func connect(ctx context.Context, conn *net.UnixConn, p process, opts Options) (*Client, error) {
	c := &Client{
		opts: opts, conn: conn, process: p, done: make(chan struct{}),
		calls: map[uint32]*call{}, groups: map[string]Group{}, stale: map[string]Group{},
	}
	r := &frameReader{r: conn}
	if err := c.hello(ctx, r); err != nil {
		_ = conn.Close()
		return nil, err
	}
	go c.read(r) // ends when the connection does
	return c, nil
}

// dial connects through the opened directory, because a socket's path may have 107 bytes only.
func dial(socket string) (*net.UnixConn, error) {
	dir, name, err := openParent(socket)
	if err != nil {
		return nil, fmt.Errorf("no supervisor at %s: %w", socket, driver.ErrGone)
	}
	defer dir.Close()
	addr := &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name)}
	conn, err := net.DialUnix("unix", nil, addr)
	if slices.ContainsFunc(nobody, func(e unix.Errno) bool { return errors.Is(err, e) }) {
		return nil, fmt.Errorf("no supervisor listens at %s: %w", socket, driver.ErrGone)
	}
	if err != nil {
		return nil, fmt.Errorf("connecting to the supervisor: %w", err)
	}
	if err := ours(conn, dir); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("what listens at %s is no supervisor (%w): %w", socket, err, driver.ErrGone)
	}
	return conn, nil
}

// ours refuses a listener that neither root, nor this agent's user, nor whom the folder belongs to has made. After a
// reboot anybody may have made the folder that a link in ours leads to (see sockets).
func ours(conn *net.UnixConn, folder *os.File) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var perr error
	if err := raw.Control(func(fd uintptr) { peer, perr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return err
	}
	if perr != nil || peer.Uid == 0 || int(peer.Uid) == os.Geteuid() {
		return perr
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(folder.Fd()), &st); err != nil || st.Uid == peer.Uid {
		return err
	}
	return drover.Errorf(drover.Forbidden, "it is user %d's", peer.Uid)
}

// nobody are the answers where nothing listens. The last two: a file, or a link, is where the folder was that ours leads to.
var nobody = []unix.Errno{unix.ECONNREFUSED, unix.ENOENT, unix.ENOTDIR, unix.ELOOP} // constant

// hello agrees on the protocol's version. It runs before the reader does, so it reads the answer itself. Errors: ErrGone, Unavailable
// without a common version.
func (c *Client) hello(ctx context.Context, r *frameReader) error {
	stop := context.AfterFunc(ctx, func() { _ = c.conn.Close() }) // ends the waiting below
	defer stop()
	h := wire.Hello{Min: wire.MinVersion, Max: wire.Version, Pid: os.Getpid()}
	if err := c.write(wire.Frame(wire.KindHello, 0, 0, h.Encode())); err != nil {
		return c.helloFailed(ctx, err)
	}
	header, p, err := r.next()
	if err != nil {
		return c.helloFailed(ctx, err)
	}
	theirs, err := wire.DecodeHello(p)
	switch {
	case header.Kind != wire.KindHello || err != nil:
		return drover.Errorf(drover.Internal, "what listens there is no supervisor")
	case theirs.Failure != "":
		return drover.Errorf(
			drover.Unavailable,
			"supervisor: %s (it speaks up to %d, this agent %d to %d)",
			theirs.Failure,
			theirs.Max,
			wire.MinVersion,
			wire.Version,
		)
	}
	c.id = theirs.ID
	return nil
}

// ID is what LaunchConfig.ID gave the supervisor that answered.
func (c *Client) ID() string { return c.id }

// Child is the process, if the client comes from Launch, else nil.
func (c *Client) Child() *Child { return c.child }

// helloFailed tells our own end of patience, after which the supervisor may well live, from a supervisor that hung up.
func (c *Client) helloFailed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("greeting the supervisor: %w", context.Cause(ctx))
	}
	return fmt.Errorf("greeting the supervisor: %w (%w)", driver.ErrGone, err)
}

// Done is closed when the connection ended: drover-init is gone, or Close was called.
func (c *Client) Done() <-chan struct{} { return c.done }

// Close drops the connection. The supervisor and what it runs live on (executions without Detach for the grace).
func (c *Client) Close() error {
	err := c.conn.Close()
	<-c.done
	return err
}

// read hands frames to their calls until the connection ends.
func (c *Client) read(r *frameReader) {
	defer close(c.done)
	defer c.conn.Close() //nolint:errcheck // it is over
	for {
		h, p, err := r.next()
		if err != nil {
			c.fail()
			return
		}
		c.mu.Lock()
		k := c.calls[h.Channel]
		c.mu.Unlock()
		if k != nil {
			k.deliver(h, p)
		}
	}
}

var errLost = drover.Errorf(drover.Gone, "the connection to the supervisor ended: %w", driver.ErrGone) // a constant error

// fail ends all calls with errLost, and closes what the client holds open of control groups. The groups themselves stay for the next
// client.
func (c *Client) fail() {
	c.mu.Lock()
	calls := c.calls
	c.calls = nil
	left := []any{c.opts.Groups}
	for _, groups := range []map[string]Group{c.groups, c.stale} {
		for _, g := range groups {
			left = append(left, g)
		}
	}
	c.mu.Unlock()
	for _, k := range calls {
		k.end(errLost)
	}
	for _, g := range left { // nothing is started any more; who still has a session has the client, for long
		if g, ok := g.(interface{ Close() }); ok {
			g.Close()
		}
	}
}

// open opens a channel. Errors: Gone.
func (c *Client) open(op wire.Op, request []byte, files ...*os.File) (*call, error) {
	c.mu.Lock()
	if c.calls == nil {
		c.mu.Unlock()
		return nil, errLost
	}
	c.next++
	k := &call{c: c, id: c.next, wake: wake.NewSignal(), credit: wake.NewSignal()}
	c.calls[k.id] = k
	c.mu.Unlock()
	frame := make([]byte, wire.HeaderSize, wire.HeaderSize+1+len(request))
	wire.Header{Length: uint32(1 + len(request)), Kind: wire.KindOpen, Fds: uint8(len(files)), Channel: k.id}.Put(frame)
	frame = append(append(frame, byte(op)), request...)
	if err := c.writeWith(frame, files); err != nil {
		k.forget()
		return nil, errLost
	}
	return k, nil
}

// write sends the parts of a frame without another frame between them, and without copying them together.
func (c *Client) write(parts ...[]byte) error {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	if len(parts) == 1 {
		_, err := c.conn.Write(parts[0])
		return err
	}
	b := net.Buffers(parts)
	_, err := b.WriteTo(c.conn)
	return err
}

// writeWith sends a frame with files. They go with its first byte, so what is left of it is sent plainly.
func (c *Client) writeWith(frame []byte, files []*os.File) error {
	if len(files) == 0 {
		return c.write(frame)
	}
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	c.wmu.Lock()
	defer c.wmu.Unlock()
	n, _, err := c.conn.WriteMsgUnix(frame, unix.UnixRights(fds...), nil)
	if err == nil && n < len(frame) {
		_, err = c.conn.Write(frame[n:])
	}
	return err
}

// ask opens a channel and waits for its one answer.
func (c *Client) ask(ctx context.Context, op wire.Op, request []byte, files ...*os.File) ([]byte, error) {
	k, err := c.open(op, request, files...)
	if err != nil {
		return nil, err
	}
	defer k.forget()
	return k.answer(ctx, nil)
}

// answer returns the reply; notices before it go to the function.
func (k *call) answer(ctx context.Context, notice func(text string)) ([]byte, error) {
	for {
		m, err := k.next(ctx)
		if err != nil {
			if ctx.Err() != nil {
				_ = k.c.write(wire.Frame(wire.KindClose, 0, k.id, nil))
			}
			return nil, err
		}
		switch {
		case m.kind == wire.KindReply:
			return m.payload, nil
		case m.kind == wire.KindNotice && notice != nil:
			notice(string(m.payload))
		default:
			return nil, drover.Errorf(drover.Internal, "supervisor answered with frame kind %d", m.kind)
		}
	}
}
