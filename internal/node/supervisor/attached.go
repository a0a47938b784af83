package supervisor

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/supervisor/pipelink"
)

// keyFile is the file in StateDir with the key, by which a later agent goes on speaking to the same drover-init.
const keyFile = "key"

// AttachedArgs are drover-init's arguments where it is reached by its stdin and stdout; logs is the folder of the main
// task's logs as it sees it, "" = none.
func AttachedArgs(logs string) []string {
	if logs == "" {
		return []string{pipelink.Command}
	}
	return []string{pipelink.Command, logs}
}

// StartAttached configures a drover-init that was started with AttachedArgs, and connects. The stream's Read gives its stdout, and Write
// goes to its stdin; it is closed with the client. pid is a process of the machine that ends with drover-init, and ends it when killed.
// Fields of cfg that say how the process is started are not used.
func StartAttached(ctx context.Context, cfg LaunchConfig, stream io.ReadWriteCloser, pid int, opts Options) (*Client, error) {
	stop := context.AfterFunc(ctx, func() { _ = stream.Close() })
	defer stop()
	err := os.MkdirAll(cfg.StateDir, 0o700)
	if err == nil {
		err = process{pid, startTime(pid)}.write(cfg.StateDir)
	}
	var key pipelink.Key
	_, _ = rand.Read(key[:]) // cannot fail
	if err == nil {
		err = os.WriteFile(filepath.Join(cfg.StateDir, keyFile), key[:], 0o600)
	}
	if err == nil {
		err = pipelink.SendBoot(stream, key, cfg.boot().Encode())
	}
	if err != nil {
		_ = stream.Close()
		return nil, fmt.Errorf("starting the supervisor: %w", orCause(ctx, err))
	}
	return ConnectAttached(ctx, cfg.StateDir, stream, opts)
}

// ConnectAttached connects to one that StartAttached started, over a new stream, which it owns. Errors: driver.ErrGone.
func ConnectAttached(ctx context.Context, stateDir string, stream io.ReadWriteCloser, opts Options) (*Client, error) {
	conn, err := dialAttached(stateDir, stream, opts)
	if err != nil {
		_ = stream.Close()
		return nil, fmt.Errorf("reaching the supervisor: %w", err)
	}
	return connect(ctx, conn, readProcess(stateDir), opts)
}

// dialAttached carries a connection over the stream. Without the key there is nobody to be reached: driver.ErrGone.
func dialAttached(stateDir string, stream io.ReadWriteCloser, opts Options) (*net.UnixConn, error) {
	key, err := os.ReadFile(filepath.Join(stateDir, keyFile))
	if err != nil || len(key) != len(pipelink.Key{}) {
		return nil, errors.Join(driver.ErrGone, err)
	}
	// A connection's number must be new to this drover-init; agents before us did not write down theirs.
	var id [8]byte
	_, _ = rand.Read(id[:]) // cannot fail
	f, err := pipelink.Dial(stream, pipelink.Key(key), binary.LittleEndian.Uint64(id[:]), opts.Clock)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrGone, err)
	}
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		_ = c.Close()
		return nil, unix.EINVAL
	}
	return conn, nil
}

// Alive tells whether the process that StartAttached was given lives; it knows without asking anybody.
func Alive(stateDir string) bool { return readProcess(stateDir).alive() }
