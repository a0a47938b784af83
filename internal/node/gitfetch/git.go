package gitfetch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/netguard"
)

// Config of a Git. All must be set but Read.
type Config struct {
	Guard *netguard.Guard // of servers' addresses
	Read  []string        // folders and files that git may read beside those of the machine's system
	Clock clock.Clock
	Log   *slog.Logger
}

// Git fetches trees. It is safe for use by several goroutines.
type Git struct {
	cfg   Config
	apart bool          // git has namespaces of its own
	hosts []string      // files of the keys of ssh's servers
	users atomic.Uint32 // counts who git was
	bare  sync.Once     // the log was told that git has less around it than it could
}

// New returns a Git; git itself is looked for at each fetch.
func New(cfg Config) *Git {
	home, _ := os.UserHomeDir() // without one there is only the machine's file
	return &Git{cfg: cfg, apart: mayUnshare(), hosts: []string{filepath.Join(home, ".ssh", "known_hosts"), "/etc/ssh/ssh_known_hosts"}}
}

// Want is a tree of a repository.
type Want struct {
	URL  string // https://, http://, ssh://, or user@host:path
	Ref  string // a branch, a tag, a full reference or a commit; "" = the server's HEAD
	Path string // in the tree; "" = all of it
	File bool   // Path is a file
	Key  string // private key, as ssh writes it; for ssh only
	// Folder of Root is for repositories of one fetch at a time; it is made if it is not there, and stays. Others may write to Root at
	// the same time: so the repository has a name that nobody knows before, and no link leads it out.
	Root   *os.Root
	Folder string
	Size   int64 // bytes that may come from the server, and that a file of the repository may have
}

// Users of git processes are above those that others hand out: each fetch has another one, so that no two can look into each other.
const (
	firstUser = 0x70000000
	userCount = 1 << 16
)

// Fetch gets the tree. Errors: Invalid for a wanted thing that is none, NotImplemented where there is no git and for other protocols,
// Forbidden for an address, TooLarge; others may be tried again.
func (g *Git) Fetch(ctx context.Context, w Want) (*Tree, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	r, err := g.repository(w)
	if err != nil {
		return nil, err
	}
	if err := removeFormer(w); err != nil {
		return nil, err
	}
	t := &Tree{r: r}
	if err := g.fetch(ctx, r, w); err != nil {
		return nil, errors.Join(err, t.remove())
	}
	if err := t.open(ctx, w); err != nil {
		return nil, errors.Join(err, t.remove())
	}
	return t, nil
}

func (w *Want) check() error {
	if err := checkURL(w.URL); err != nil {
		return err
	}
	if w.Ref != "" {
		if err := checkRef(w.Ref); err != nil {
			return err
		}
	}
	if w.Path != "" && (!filepath.IsLocal(w.Path) || strings.ContainsAny(w.Path, "\x00\n")) || w.File && w.Path == "" {
		return drover.Errorf(drover.Invalid, "path %q: want one in the repository, after // in the source", w.Path)
	}
	if w.ssh() && w.Key == "" {
		return drover.Errorf(drover.Invalid, "a repository by ssh needs the option sshkey, a private key in base64")
	}
	return nil
}

func (w *Want) ssh() bool {
	return !strings.HasPrefix(w.URL, "https://") && !strings.HasPrefix(w.URL, "http://")
}

func (g *Git) repository(w Want) (*repository, error) {
	if !able.Load() {
		return nil, drover.Errorf(drover.Internal, "no repository can be fetched: this program is no git when it is executed again")
	}
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, drover.Errorf(drover.NotImplemented, "this node has no git: install it where the agent's PATH leads")
	}
	if git, err = filepath.Abs(git); err != nil {
		return nil, err
	}
	r := &repository{root: w.Root, git: git, read: g.cfg.Read, hosts: g.hosts, size: w.Size}
	r.rel = filepath.Join(w.Folder, prefix+id.Random{}.New())
	r.folder = filepath.Join(w.Root.Name(), r.rel)
	r.home = r.folder
	if w.ssh() {
		if r.bridge, err = os.Executable(); err != nil {
			return nil, err
		}
		r.bridge = strings.TrimSuffix(r.bridge, " (deleted)") // by an update, which put another one there
	}
	if g.apart {
		r.user, r.home = firstUser+int(g.users.Add(1)%userCount), inside
	}
	if r.user == 0 || Landlock() == 0 {
		g.bare.Do(func() {
			g.cfg.Log.Warn("git has less around it than it could when it fetches artifacts",
				"namespaces", r.user != 0, "landlock", Landlock())
		})
	}
	return r, nil
}

// want is the reference under which a repository has what is wanted.
const want = "refs/drover/want"

// fetch brings the wanted commit into the repository.
func (g *Git) fetch(ctx context.Context, r *repository, w Want) error {
	listener, space, err := listen(r.user != 0)
	if err != nil {
		return fmt.Errorf("making a tunnel for git: %w", err)
	}
	if space != nil {
		defer space.Close()
	}
	t := &tunnel{guard: g.cfg.Guard, clock: g.cfg.Clock, listener: listener, user: tunnelUser, secret: id.Random{}.New(), most: w.Size}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t.serve(ctx, cancel)
	defer t.close()
	way := listener.Addr().(*net.TCPAddr)
	if err := r.lay(w, way, t.secret); err != nil {
		return err
	}
	run := func(args ...string) error {
		c := r.command(ctx, way, t.secret, space, append([]string{"fetch", "--quiet", "--no-tags", "--no-recurse-submodules"}, args...))
		err := c.Run()
		if why := t.reason(); err != nil && why != nil {
			return why
		}
		return c.failure(ctx, err)
	}
	ref := w.Ref
	if ref == "" {
		ref = "HEAD"
	}
	err = run("--depth=1", "origin", "+"+ref+":"+want)
	if err == nil || ctx.Err() != nil || t.reason() != nil || !needsAll(err, w.Ref) {
		return err
	}
	// The server gives only what has a name, or this is the beginning of a commit's name: so look for it here.
	if err := run("origin", "+HEAD:refs/drover/head", "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"); err != nil {
		return err
	}
	if ref == "HEAD" {
		ref = "refs/drover/head"
	}
	c := r.command(ctx, nil, "", nil, []string{"update-ref", want, ref})
	if err := c.failure(ctx, c.Run()); err != nil {
		return fmt.Errorf("ref %q: %w", w.Ref, err)
	}
	return nil
}

// needsAll reports whether a fetch of one commit failed for what a fetch of all of them may mend: servers without shallow
// fetches, and those that give no commit by its name.
func needsAll(err error, ref string) bool {
	said := err.Error()
	if strings.Contains(said, "shallow") {
		return true
	}
	if len(ref) < 4 || strings.Trim(strings.ToLower(ref), "0123456789abcdef") != "" {
		return false
	}
	for _, part := range []string{"not our ref", "find remote ref", "unadvertised object", "no such remote ref"} {
		if strings.Contains(said, part) {
			return true
		}
	}
	return false
}

// command is a git process, sealed off.
type command struct {
	*exec.Cmd
	said *tail
}

// command returns git with those arguments; way and space are for one with a network.
func (r *repository) command(ctx context.Context, way *net.TCPAddr, secret string, space *os.File, args []string) *command {
	o := order{Git: r.git, Args: args, Folder: r.folder, User: r.user, Read: r.read, Bridge: r.bridge, FileSize: uint64(max(r.size, 1<<20))}
	attr := &syscall.SysProcAttr{Setpgid: true}
	var files []*os.File
	if r.user != 0 {
		attr.Cloneflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC
		if space == nil {
			attr.Cloneflags |= syscall.CLONE_NEWNET
		}
	}
	if way != nil {
		o.Port = uint16(way.Port)
	}
	if space != nil {
		files, o.Net = append(files, space), 3
	}
	text, _ := json.Marshal(o) // strings and numbers
	c := &command{said: &tail{}, Cmd: exec.CommandContext(ctx, "/proc/self/exe")}
	c.Args, c.Dir, c.Env = []string{title, string(text)}, "/", r.environment(way, secret)
	c.Stderr, c.SysProcAttr, c.ExtraFiles = c.said, attr, files
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = waitDelay
	return c
}

// failure says why git ended with an error, in its own words as far as these are plain.
func (c *command) failure(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if words := c.said.words(); words != "" {
		return drover.Errorf(drover.Unavailable, "git: %s", words)
	}
	return drover.Errorf(drover.Unavailable, "git: %w", err)
}

// tail keeps the end of what is written.
type tail struct{ text []byte }

const maxTail = 4 << 10

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if n := len(t.text); n > maxTail {
		t.text = t.text[n-maxTail:]
	}
	return len(p), nil
}

// words are the last lines that git said, on one. Of what the server had it say there is nothing but plain letters.
func (t *tail) words() string {
	var lines []string
	for line := range bytes.Lines(t.text) {
		if s := strings.TrimSpace(string(line)); s != "" && !strings.HasPrefix(s, "hint:") && !strings.HasPrefix(s, "warning:") {
			lines = append(lines, s)
		}
	}
	text := strings.Join(lines, "; ")
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r > '~' {
			return -1
		}
		return r
	}, text)
	return strings.TrimPrefix(text[:min(len(text), 600)], "fatal: ")
}

var _ io.Writer = (*tail)(nil)
