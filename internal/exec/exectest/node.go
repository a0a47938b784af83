package exectest

import (
	"bytes"
	"context"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exchange"
)

// Node is a exchange.Workloads whose commands are a few words (see session.go). What it does not have panics, as a nil
// interface does.
type Node struct {
	exchange.AllocFolder
	exchange.AllocControl
	exchange.NodeIdentity

	mu       sync.Mutex
	sessions map[string]*session
	files    map[string]map[string]file // by allocation and path
	started  int
	away     bool
	mute     int // calls that find no answer
}

// Mute has the next calls that ask for what runs, or attach to it, find no answer: they end with their context.
func (n *Node) Mute(calls int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mute = calls
}

// answers waits for ctx to end if the node is mute.
func (n *Node) answers(ctx context.Context) error {
	n.mu.Lock()
	mute := n.mute > 0
	if mute {
		n.mute--
	}
	n.mu.Unlock()
	if !mute {
		return nil
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// NewNode returns a node without files.
func NewNode() *Node {
	return &Node{sessions: map[string]*session{}, files: map[string]map[string]file{}}
}

// Started is how many executions were started.
func (n *Node) Started() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.started
}

// Stuck is a command that this node neither starts nor refuses.
const Stuck = "stuck"

// StartExecution serves exchange.Workloads.
func (n *Node) StartExecution(ctx context.Context, allocID, _ string, spec execution.Spec) (execution.Session, error) {
	if spec.Argv[0] == Stuck {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sessions[allocID+"/"+spec.ID] != nil {
		return nil, drover.Errorf(drover.Conflict, "execution id %q is in use", spec.ID)
	}
	s := newSession(spec)
	n.sessions[allocID+"/"+spec.ID] = s
	n.started++
	return s, nil
}

// AttachExecution serves exchange.Workloads: of what runs this node replays no output, it goes on where the last session was. A
// receipt that was read is given again until its session is closed; then all of the output is, see execution.Spec.Keep.
func (n *Node) AttachExecution(ctx context.Context, allocID, _, executionID string, _ execution.Offsets) (execution.Session, error) {
	if err := n.answers(ctx); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.away {
		return nil, drover.Errorf(drover.Unavailable, "the node is away")
	}
	s := n.sessions[allocID+"/"+executionID]
	if s == nil {
		return nil, drover.Errorf(drover.NotFound, "no such execution")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forgotten() {
		return s.keeps()
	}
	s.cut, s.again = make(chan struct{}), s.receipt
	return s, nil
}

// CutLink breaks all sessions and keeps the node away until it is told otherwise; the executions go on.
func (n *Node) CutLink(away bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.away = away
	if away {
		for _, s := range n.sessions {
			s.breakLink()
		}
	}
}

// Executions serves exchange.Workloads.
func (n *Node) Executions(ctx context.Context, allocID string) ([]execution.Execution, error) {
	if err := n.answers(ctx); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.away {
		return nil, drover.Errorf(drover.Unavailable, "the node is away")
	}
	var list []execution.Execution
	for key, s := range n.sessions {
		if strings.HasPrefix(key, allocID+"/") && (!s.forgotten() || s.waits()) {
			list = append(list, execution.Execution{ID: s.spec.ID, Spec: s.spec})
		}
	}
	return list, nil
}

// Lie makes the node say that the executions of an allocation run in another one.
func (n *Node) Lie(allocID, otherID string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for key, s := range n.sessions {
		if id, ok := strings.CutPrefix(key, allocID+"/"); ok {
			delete(n.sessions, key)
			n.sessions[otherID+"/"+id] = s
		}
	}
}

// Break ends all sessions of the allocation as a lost node does.
func (n *Node) Break(allocID string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for key, s := range n.sessions {
		if strings.HasPrefix(key, allocID+"/") {
			s.cancel(errBroken)
		}
	}
}

// end ends everything that runs, as the machine's end does: a supervisor whose server has gone keeps what it has for it.
func (n *Node) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.sessions {
		s.once.Do(func() { close(s.closed) })
		s.cancel(errKilled)
	}
}

// Files serves exchange.Workloads.
func (n *Node) Files(allocID, _ string) execution.Files { return &files{n, allocID} }

// file is a file or, with dir, a directory; a directory has no data.
type file struct {
	data []byte
	dir  bool
	mode uint32
}

// files are the files of one allocation, all owned by root. Two names have a meaning: "forbidden" can only be
// listed by privileged requests, and nothing can be written below "readonly".
type files struct {
	n     *Node
	alloc string
}

// all returns the allocation's files; n.mu is held.
func (f *files) all() map[string]file {
	if f.n.files[f.alloc] == nil {
		f.n.files[f.alloc] = map[string]file{".": {dir: true, mode: 0o755}, "forbidden": {dir: true}}
	}
	return f.n.files[f.alloc]
}

// List knows paths relative to the root only. A listed file is answered as itself, under its last name.
func (f *files) List(_ context.Context, r execution.FileRequest) ([]execution.FileInfo, error) {
	f.n.mu.Lock()
	defer f.n.mu.Unlock()
	all, dir := f.all(), path.Clean(r.Path)
	switch d, ok := all[dir]; {
	case !ok:
		return nil, drover.Errorf(drover.NotFound, "%s: no such directory", r.Path)
	case !d.dir:
		return []execution.FileInfo{info(path.Base(dir), d)}, nil
	}
	if dir == "forbidden" && !r.Privileged {
		return nil, drover.Errorf(drover.Forbidden, "%s: permission denied", r.Path)
	}
	var infos []execution.FileInfo
	for _, name := range slices.Sorted(maps.Keys(all)) {
		rel := name
		if dir != "." {
			var ok bool
			if rel, ok = strings.CutPrefix(name, dir+"/"); !ok {
				continue
			}
		}
		if name == "." || name == "forbidden" || !r.Recursive && strings.Contains(rel, "/") {
			continue
		}
		infos = append(infos, info(rel, all[name]))
	}
	return infos, nil
}

// info has a fixed time, so that tests can compare whole listings.
func info(name string, f file) execution.FileInfo {
	i := execution.FileInfo{
		Path: name, Type: "-", Size: int64(len(f.data)), Mode: f.mode, Owner: "root", Group: "root",
		ModTime: time.Unix(1_700_000_000, 0).UTC(),
	}
	if f.dir {
		i.Type = "d"
	}
	return i
}

// Read copies nothing: written data is never changed afterwards, only replaced. A length of 0 reads to the end.
func (f *files) Read(_ context.Context, r execution.FileRequest) (execution.FileInfo, io.ReadCloser, error) {
	f.n.mu.Lock()
	defer f.n.mu.Unlock()
	got, ok := f.all()[path.Clean(r.Path)]
	if !ok || got.dir {
		return execution.FileInfo{}, nil, drover.Errorf(drover.NotFound, "%s: no such file", r.Path)
	}
	data := got.data[min(r.Offset, int64(len(got.data))):]
	if r.Length > 0 {
		data = data[:min(r.Length, int64(len(data)))]
	}
	return info(path.Base(r.Path), got), io.NopCloser(bytes.NewReader(data)), nil
}

// Apply makes the changes in order and stops at the first that fails, as a node does. Directories above a file need
// not exist.
func (f *files) Apply(_ context.Context, changes []execution.FileChange) error {
	f.n.mu.Lock()
	defer f.n.mu.Unlock()
	all := f.all()
	for _, c := range changes {
		name := path.Clean(c.Path)
		switch {
		case strings.HasPrefix(name, "readonly/"):
			return drover.Errorf(drover.Forbidden, "%s: read-only file system", c.Path)
		case c.Delete:
			f.remove(all, name)
		case c.Mkdir:
			all[name] = file{dir: true, mode: cmpOr(c.Mode, 0o1777)}
		default:
			all[name] = file{data: bytes.Clone(c.Data), mode: cmpOr(c.Mode, 0o744)}
		}
	}
	return nil
}

// remove deletes a name with all below it; "*" deletes everything but hidden names. What does not exist is no
// error.
func (f *files) remove(all map[string]file, name string) {
	for have := range all {
		top, _, _ := strings.Cut(have, "/")
		glob := name == "*" && have != "." && !strings.HasPrefix(top, ".")
		if glob || have == name || strings.HasPrefix(have, name+"/") {
			delete(all, have)
		}
	}
}

// Write reads all of r before it takes the lock, since r may be a request that is still arriving.
func (f *files) Write(ctx context.Context, c execution.FileChange, r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	c.Data = data
	return f.Apply(ctx, []execution.FileChange{c})
}

// Archive is no tar, but a text that says which path was asked for.
func (f *files) Archive(_ context.Context, r execution.FileRequest) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("tar of " + r.Path)), nil
}

// Extract keeps the bytes in one file named "extracted", for tests to compare.
func (f *files) Extract(ctx context.Context, r execution.FileRequest, tar io.Reader) error {
	return f.Write(ctx, execution.FileChange{Path: path.Join(r.Path, "extracted")}, tar)
}

// cmpOr is the first of the two modes that is not 0.
func cmpOr(a, b uint32) uint32 {
	if a != 0 {
		return a
	}
	return b
}
