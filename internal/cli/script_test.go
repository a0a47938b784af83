package cli_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/sharetest"
)

// binary is the drover that the scripts run; TestMain builds it once.
var binary string

func TestMain(m *testing.M) {
	os.Exit(withBinary(m.Run))
}

func withBinary(run func() int) int {
	dir, err := os.MkdirTemp("", "drover-cli-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) // only litter would be left
	binary = filepath.Join(dir, "drover")
	build := exec.Command("go", "build", "-ldflags=-dumpdep", "-o", binary, "github.com/drover-project/drover/cmd/drover")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.StderrPipe()
	if err == nil {
		err = build.Start()
	}
	if err == nil {
		byName = callsMethodsByName(out)
		err = build.Wait()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "building drover:", err)
		return 1
	}
	return run()
}

// byName are the functions of the binary that call methods by names which the linker does not know.
var byName []string

// callsMethodsByName reads what the linker says of who refers to whom, and passes on what else the build says.
func callsMethodsByName(out io.Reader) (list []string) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		from, _, edge := strings.Cut(lines.Text(), " -> ")
		switch name, marked := strings.CutSuffix(from, " <ReflectMethod>"); {
		case marked && !slices.Contains(list, name):
			list = append(list, name)
		case !edge:
			fmt.Fprintln(os.Stderr, lines.Text())
		}
	}
	return list
}

// One function that calls methods by name, such as text/template's executor, has the linker keep all exported methods of all types:
// 6 MB of the binary's 38. docs/performance.md says how its size is made up.
func TestNothingCallsMethodsByName(t *testing.T) {
	t.Parallel()
	require.Empty(t, byName, "these keep all exported methods in the binary; templates are executed by datadog-agent/pkg/template/text")
}

// TestScripts runs testdata/script, each file against a dev agent of its own.
func TestScripts(t *testing.T) {
	t.Parallel()
	sharetest.Take(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               startAgent,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits, "set": set, "until": until,
		},
	})
}

// startAgent gives the script an agent, which ends with it.
func startAgent(e *testscript.Env) error {
	e.Setenv("PATH", filepath.Dir(binary)+":"+e.Getenv("PATH"))
	e.Setenv("TZ", "UTC")
	address, stop, err := devAgent()
	if err != nil {
		return err
	}
	e.Defer(func() {
		if err := stop(); err != nil {
			e.T().Log("the agent:", err)
		}
	})
	e.Setenv("DROVER_ADDR", address)
	return nil
}

// devAgent starts an agent whose node is ready.
func devAgent() (address string, stop func() error, err error) {
	short, err := os.MkdirTemp("", "dr-*") // sockets have short paths
	if err != nil {
		return "", nil, err
	}
	agent := exec.Command(binary, "agent", "-dev", "-http-port", "0", "-log-level", "warn")
	agent.Env = append(os.Environ(), "TMPDIR="+short)
	logs := &strings.Builder{}
	agent.Stderr = logs
	out, err := agent.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := agent.Start(); err != nil {
		return "", nil, err
	}
	stop = func() error {
		_ = agent.Process.Signal(syscall.SIGTERM) // it may have ended: Wait tells
		err := agent.Wait()
		_ = os.RemoveAll(short) // only litter would be left
		if err != nil {
			return fmt.Errorf("%w\n%s", err, logs)
		}
		return nil
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if address = regexp.MustCompile(`http://\S+`).FindString(line); address == "" {
		return "", nil, errors.Join(fmt.Errorf("the agent said %q: %w", line, err), stop())
	}
	if err := awaitNode(address); err != nil {
		return "", nil, errors.Join(err, stop())
	}
	return address, stop, nil
}

// awaitNode waits by blocking queries until the agent's node is ready.
func awaitNode(address string) error {
	for index := "1"; ; {
		res, err := http.Get(address + "/v1/nodes?wait=30s&index=" + index)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(res.Body)
		_ = res.Body.Close() // only read
		if err != nil || strings.Contains(string(text), `"ready"`) {
			return err
		}
		index = res.Header.Get("X-Nomad-Index")
	}
}

// exits is "exits CODE PROGRAM ARG…": the program must end with this code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG…")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := "0"
	if err != nil {
		code = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if code != args[0] {
		ts.Fatalf("it ended with %s, not with %s", code, args[0])
	}
}

// set is "set NAME": what the last program printed becomes a variable.
func set(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: set NAME")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// until is "until PATTERN PROGRAM ARG…": the program must print a line like this, and end well when it is interrupted.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN PROGRAM ARG…")
	}
	pattern, err := regexp.Compile(args[0])
	ts.Check(err)
	cmd := exec.Command(binary, args[2:]...)
	cmd.Env = append(os.Environ(), "DROVER_ADDR="+ts.Getenv("DROVER_ADDR"))
	errs := &strings.Builder{}
	cmd.Stderr = errs
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	found := false
	for lines := bufio.NewScanner(out); !found && lines.Scan(); {
		found = pattern.MatchString(lines.Text())
	}
	ts.Check(cmd.Process.Signal(os.Interrupt))
	_, _ = io.Copy(io.Discard, out) // to its end, so that Wait may close it
	if err := cmd.Wait(); err != nil || !found {
		ts.Fatalf("found %v, ended with %v: %s", found, err, errs)
	}
}
