package program

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/node/driver/drivertest"
	"github.com/drover-project/drover/internal/sharetest"
)

// Binary is the real program, built once by Main with the Tags.
var Binary, Tags string

// Main builds the program, runs the tests, and checks at the end that nothing of it is left on the machine: a test that
// leaves something behind fails its package. It returns the code to exit with.
func Main(m *testing.M) int {
	sharetest.Folder() // where it is for all, before TMPDIR changes
	sweep()
	dir, err := os.MkdirTemp("", GroupParent()+"-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer drivertest.SweepFolder(dir) // of no use any more
	inMemory(dir)
	Binary = filepath.Join(dir, "drover")
	build := exec.Command("go", "build", "-tags", Tags, "-o", Binary, "github.com/drover-project/drover/cmd/drover")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is shipped: it runs in any container
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building drover: %v\n%s", err, out)
		return 1
	}
	if err := os.Setenv("TMPDIR", dir); err != nil { // what an agent with -dev leaves would be here
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := waitTogether(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	sweepTokens()
	for _, left := range leftovers(dir) {
		fmt.Fprintln(os.Stderr, "left behind:", left)
		code = 1
	}
	return code
}

// waitTogether has three tests run for two processors, unless -parallel says otherwise: a third of a test is waiting.
func waitTogether() error {
	flag.Parse()
	told := false
	flag.Visit(func(f *flag.Flag) { told = told || f.Name == "test.parallel" })
	if told {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa((runtime.GOMAXPROCS(0)*3+1)/2))
}

// inMemory has what is in the folder in memory, if this user may mount. Agents make and remove hundreds of thousands of files.
// ext4 looks at each inode that was removed within the last minutes whenever it makes one, which is up to half of what a test's
// kernel does.
func inMemory(dir string) {
	if err := syscall.Mount("drover-e2e", dir, "tmpfs", 0, "mode=0700"); err != nil {
		fmt.Fprintln(os.Stderr, "files of tests are on the disk:", err)
	}
}

// Agent is a running drover.
type Agent struct {
	Addr string // host:port of the faces; empty if the agent ended before it served

	t    testing.TB
	cmd  *exec.Cmd
	done chan struct{}

	mu  sync.Mutex
	out strings.Builder
}

// Start runs `drover agent args…` on free ports and waits until it serves.
func Start(t testing.TB, args ...string) *Agent {
	t.Helper()
	a := Launch(t, args...)
	require.NotEmpty(t, a.Addr, "the agent did not start:\n%s", a.Output())
	return a
}

// Launch is Start for an agent that may refuse to start.
func Launch(t testing.TB, args ...string) *Agent {
	t.Helper()
	return LaunchOf(t, Binary, args...)
}

// LaunchOf is Launch for another program than the one that Main built, as an older one.
func LaunchOf(t testing.TB, binary string, args ...string) *Agent {
	t.Helper()
	sharetest.Take(t)
	a := &Agent{t: t, done: make(chan struct{}), cmd: exec.Command(binary,
		append([]string{"agent", "-http-port", "0", "-rpc-port", "0"}, args...)...)}
	a.cmd.Env = append(os.Environ(), "TMPDIR="+os.Getenv("TMPDIR"))
	pipe, err := a.cmd.StdoutPipe()
	require.NoError(t, err)
	a.cmd.Stderr = a.cmd.Stdout
	require.NoError(t, a.cmd.Start())
	serving := make(chan string, 1)
	go a.read(bufio.NewScanner(pipe), serving) // ends when the process does
	t.Cleanup(a.Stop)
	patience, done := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer done()
	select {
	case a.Addr = <-serving:
	case <-a.done:
	case <-patience.Done():
		t.Fatalf("the agent did not start:\n%s", a.Output())
	}
	return a
}

var servingOn = regexp.MustCompile(`(?i)serving on https?://(\S+)`)

func (a *Agent) read(lines *bufio.Scanner, serving chan<- string) {
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

// Output is what the agent has said.
func (a *Agent) Output() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.out.String()
}

// Stop ends the agent as a service manager would.
func (a *Agent) Stop() { a.End(syscall.SIGTERM) }

// End ends the agent with a signal that it ends by in its own time.
func (a *Agent) End(by syscall.Signal) {
	if a.cmd.ProcessState != nil {
		return
	}
	_ = a.cmd.Process.Signal(by)
	patience, done := context.WithTimeout(context.WithoutCancel(a.t.Context()), time.Minute)
	defer done()
	select {
	case <-a.done:
	case <-patience.Done():
		_ = a.cmd.Process.Signal(syscall.SIGQUIT)
		<-a.done
		a.t.Errorf("the agent did not stop within a minute:\n%s", a.Output())
	}
	_ = a.cmd.Wait()
	if a.t.Failed() {
		a.t.Logf("the agent said:\n%s", a.Output())
	}
}

// PID is the process's.
func (a *Agent) PID() int { return a.cmd.Process.Pid }

// Kill sends SIGKILL, and waits for nothing.
func (a *Agent) Kill() error { return a.cmd.Process.Kill() }

// PullThePlug ends the agent with SIGKILL.
func (a *Agent) PullThePlug() {
	require.NoError(a.t, a.Kill())
	<-a.done
	_ = a.cmd.Wait()
}

// ClientBlock is a client block whose cgroups are this run's own.
func ClientBlock(more string) string {
	return fmt.Sprintf("client {\n  cgroup_parent = %q\n  %s\n}\n", GroupParent(), more)
}

// Config writes a configuration file with raw_exec, for an agent that keeps its data in dataDir unless that is empty,
// and returns the arguments for it.
func Config(t testing.TB, dataDir, more string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent.hcl")
	text := fmt.Sprintf("plugin \"raw_exec\" {\n  config {\n    enabled = true\n  }\n}\n%s\n", more)
	if dataDir != "" {
		text += fmt.Sprintf("data_dir = %q\n", dataDir)
	}
	if !strings.Contains(more, "client {") {
		text += ClientBlock("")
	}
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return []string{"-config", path}
}
