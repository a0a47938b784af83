package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

const (
	keepIdle   = 16              // supervisors without a task: more than are started at once does not help
	keepFor    = 5 * time.Second // how long one waits for a task
	endAtOnce  = 5 * time.Second // how long one that is not wanted any more may take to end
	idlePrefix = "idle-"
)

// Pool keeps supervisors whose task has ended for the next task: starting one costs more than all else of a short task.
// One serves one task at a time, and lives between two only as long as this agent. Its methods may be called at once.
type Pool struct {
	dir   string
	clock clock.Clock

	mu     sync.Mutex
	ready  bool      // dir was made; guarded by mu
	made   int       // names given; guarded by mu
	idle   []resting // the longest waiting first; guarded by mu
	closed bool      // guarded by mu
	ending sync.WaitGroup
}

// resting is a supervisor that waits for a task.
type resting struct {
	client *Client
	dir    string
	timer  clock.Timer
}

// NewPool returns an empty pool. dir is for its supervisors' folders, on the file system of LaunchConfig.StateDir; what is
// in it is removed.
func NewPool(dir string, c clock.Clock) *Pool { return &Pool{dir: dir, clock: c} }

// Take makes a kept supervisor the one of the task; nil if there is none. Of cfg, what says how the process is started is
// not used.
func (p *Pool) Take(ctx context.Context, cfg LaunchConfig, opts Options) *Client {
	for {
		r, ok := p.pop()
		if !ok {
			return nil
		}
		if err := r.serve(ctx, cfg, opts); err == nil {
			return r.client
		}
		p.end(ctx, r) // it was killed, or can't serve this task
	}
}

// pop takes the one that waited least: its memory is warm.
func (p *Pool) pop() (resting, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return resting{}, false
	}
	r := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]
	r.timer.Stop() // if it has fired, it does not find r any more
	return r, true
}

// serve gives the supervisor its task's folder and configuration.
func (r resting) serve(ctx context.Context, cfg LaunchConfig, opts Options) error {
	if err := os.MkdirAll(filepath.Dir(cfg.StateDir), 0o700); err != nil {
		return err
	}
	if err := unix.Rename(r.dir, cfg.StateDir); err != nil { // also over an empty folder, which os.Rename refuses
		return err
	}
	boot := cfg.boot()
	var files []*os.File
	if cfg.LogDir != nil {
		files = append(files, cfg.LogDir)
	}
	r.client.opts = opts // nobody else has the client
	if _, err := r.client.ask(ctx, wire.OpReuse, boot.Encode(), files...); err != nil {
		return errors.Join(err, os.Rename(cfg.StateDir, r.dir))
	}
	return nil
}

// Put keeps the supervisor of a task that has ended, if it can serve another, and reports whether it did. The folder is
// then gone, and all connections but the pool's end.
func (p *Pool) Put(ctx context.Context, stateDir string, opts Options) bool {
	if !p.room() {
		return false
	}
	client, err := Connect(ctx, SocketPath(stateDir), Options{Clock: opts.Clock, Log: opts.Log})
	if err != nil {
		return false
	}
	if _, err := client.ask(ctx, wire.OpRetire, nil); err != nil {
		_ = client.Close() // the caller ends it
		return false
	}
	r := resting{client: client, dir: stateDir}
	if dir, err := p.folder(); err == nil && os.Rename(stateDir, dir) == nil {
		r.dir = dir
		if p.keep(&r) { //nolint:contextcheck // it waits for longer than this call
			return true
		}
	}
	p.end(ctx, r)
	return false
}

// room is asked before a supervisor is retired, which cannot be undone.
func (p *Pool) room() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.closed && len(p.idle) < keepIdle
}

// folder names a folder that is not there.
func (p *Pool) folder() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ready { // what is in it is of an agent that was killed; its supervisors went with it
		if err := os.RemoveAll(p.dir); err != nil {
			return "", err
		}
		if err := os.MkdirAll(p.dir, 0o700); err != nil {
			return "", fmt.Errorf("making the folder of idle supervisors: %w", err)
		}
		p.ready = true
	}
	p.made++
	return filepath.Join(p.dir, idlePrefix+strconv.Itoa(p.made)), nil
}

// keep lets the supervisor wait for a task, for keepFor; false if the pool was closed meanwhile.
func (p *Pool) keep(r *resting) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	r.timer = p.clock.AfterFunc(keepFor, func() { p.expire(r.client) })
	p.idle = append(p.idle, *r)
	return true
}

// expire ends a supervisor that nobody took.
func (p *Pool) expire(client *Client) {
	p.mu.Lock()
	for i, r := range p.idle {
		if r.client != client {
			continue
		}
		p.idle = append(p.idle[:i:i], p.idle[i+1:]...)
		p.ending.Add(1)
		p.mu.Unlock()
		defer p.ending.Done()
		p.end(context.Background(), r) //nolint:forbidigo // a timer has no context; end has its own bound
		return
	}
	p.mu.Unlock()
}

// end ends a supervisor, and returns when it has ended.
func (p *Pool) end(ctx context.Context, r resting) {
	ctx, cancel := p.clock.WithTimeout(context.WithoutCancel(ctx), endAtOnce)
	defer cancel()
	_ = r.client.Shutdown(ctx) // past its time it is killed
	_ = r.client.Close()
	_ = os.RemoveAll(r.dir)
}

// Close ends all that are kept; none is kept from then on. It returns when they have ended.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	ready := p.ready
	p.mu.Unlock()
	for _, r := range idle {
		r.timer.Stop()
		p.end(context.Background(), r) //nolint:forbidigo // io.Closer has no context; end has its own bound
	}
	p.ending.Wait()
	if !ready {
		return nil
	}
	return os.RemoveAll(p.dir)
}
