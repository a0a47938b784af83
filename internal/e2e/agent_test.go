package e2e

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"drover/client"
)

// binary is the real program, built once.
var binary string

// TestMain builds the program, and checks at the end that nothing of it is left on the machine: a test that leaves
// something behind fails the package.
func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	sweep()
	dir, err := os.MkdirTemp("", groupParent()+"-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "drover")
	build := exec.Command("go", "build", "-o", binary, "drover/cmd/drover")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is shipped: it runs in any container
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building drover: %v\n%s", err, out)
		return 1
	}
	if err := os.Setenv("TMPDIR", dir); err != nil { // what an agent with -dev leaves would be here
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	for _, left := range leftovers(dir) {
		fmt.Fprintln(os.Stderr, "left behind:", left)
		code = 1
	}
	return code
}

// agent is a running drover.
type agent struct {
	t    *testing.T
	cmd  *exec.Cmd
	addr string // host:port of the faces
	done chan struct{}

	mu  sync.Mutex
	out strings.Builder
}

// start runs `drover agent args…` on a free port and waits until it serves.
func start(t *testing.T, args ...string) *agent {
	t.Helper()
	a := launch(t, args...)
	require.NotEmpty(t, a.addr, "the agent did not start:\n%s", a.output())
	return a
}

func launch(t *testing.T, args ...string) *agent {
	t.Helper()
	a := &agent{t: t, done: make(chan struct{}), cmd: exec.Command(binary, append([]string{"agent", "-http-port", "0", "-rpc-port", "0", "-log-level", "info"}, args...)...)}
	a.cmd.Env = append(os.Environ(), "TMPDIR="+os.Getenv("TMPDIR"))
	pipe, err := a.cmd.StdoutPipe()
	require.NoError(t, err)
	a.cmd.Stderr = a.cmd.Stdout
	require.NoError(t, a.cmd.Start())
	serving := make(chan string, 1)
	go a.read(bufio.NewScanner(pipe), serving) // ends when the process does
	t.Cleanup(a.stop)
	select {
	case a.addr = <-serving:
	case <-a.done:
	case <-time.After(60 * time.Second):
		t.Fatalf("the agent did not start:\n%s", a.output())
	}
	return a
}

var servingOn = regexp.MustCompile(`(?i)serving on https?://(\S+)`)

func (a *agent) read(lines *bufio.Scanner, serving chan<- string) {
	defer close(a.done)
	for lines.Scan() {
		a.mu.Lock()
		a.out.WriteString(lines.Text() + "\n")
		a.mu.Unlock()
		if m := servingOn.FindStringSubmatch(lines.Text()); m != nil {
			serving <- m[1]
		}
	}
}

func (a *agent) output() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.out.String()
}

// stop ends the agent as a person would.
func (a *agent) stop() {
	if a.cmd.ProcessState != nil {
		return
	}
	_ = a.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-a.done:
	case <-time.After(60 * time.Second):
		_ = a.cmd.Process.Signal(syscall.SIGQUIT)
		<-a.done
		a.t.Errorf("the agent did not stop within a minute:\n%s", a.output())
	}
	_ = a.cmd.Wait()
	if a.t.Failed() {
		a.t.Logf("the agent said:\n%s", a.output())
	}
}

// pullThePlug ends the agent with SIGKILL.
func (a *agent) pullThePlug() {
	require.NoError(a.t, a.cmd.Process.Kill())
	<-a.done
	_ = a.cmd.Wait()
}

func (a *agent) nomad() *api.Client {
	a.t.Helper()
	c, err := api.NewClient(&api.Config{Address: "http://" + a.addr})
	require.NoError(a.t, err)
	return c
}

func (a *agent) native() *client.Client {
	a.t.Helper()
	c, err := client.New("http://" + a.addr)
	require.NoError(a.t, err)
	return c
}

// config writes a configuration file, for an agent that keeps its data in dataDir unless that is empty, and returns the arguments for it.
func config(t *testing.T, dataDir, more string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent.hcl")
	text := fmt.Sprintf("plugin \"raw_exec\" {\n  config {\n    enabled = true\n  }\n}\n%s\n", more)
	if dataDir != "" {
		text += fmt.Sprintf("data_dir = %q\n", dataDir)
	}
	if !strings.Contains(more, "client {") {
		text += clientBlock("")
	}
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return []string{"-config", path}
}

// clientBlock is a client block whose cgroups are this run's own.
func clientBlock(more string) string {
	return fmt.Sprintf("client {\n  cgroup_parent = %q\n  %s\n}\n", groupParent(), more)
}

// dev starts an agent that keeps nothing.
func dev(t *testing.T) *agent {
	t.Helper()
	return start(t, append([]string{"-dev"}, config(t, "", "")...)...)
}

// eventually waits for a condition that only another process can tell.
func eventually(t *testing.T, what string, f func() (bool, string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute) // cleanups wait too
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	last := ""
	for {
		ok, seen := f()
		if ok {
			return
		}
		last = seen
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s; last: %s", what, last)
		}
	}
}
