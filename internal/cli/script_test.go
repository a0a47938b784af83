package cli_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
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
	defer os.RemoveAll(dir) //nolint:errcheck // only litter would be left
	binary = filepath.Join(dir, "drover")
	build := exec.Command("go", "build", "-o", binary, "drover/cmd/drover")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building drover:", err)
		return 1
	}
	return run()
}

// TestScripts runs testdata/script, each file against a dev agent of its own.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               startAgent,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits, "set": set,
		},
	})
}

// startAgent gives the script an agent, which ends with it.
func startAgent(e *testscript.Env) error {
	short, err := os.MkdirTemp("", "dr-*") // sockets have short paths
	if err != nil {
		return err
	}
	e.Setenv("PATH", filepath.Dir(binary)+":"+e.Getenv("PATH"))
	e.Setenv("TZ", "UTC")
	agent := exec.Command(binary, "agent", "-dev", "-http-port", "0", "-log-level", "warn")
	agent.Env = append(os.Environ(), "TMPDIR="+short)
	logs := &strings.Builder{}
	agent.Stderr = logs
	out, err := agent.StdoutPipe()
	if err != nil {
		return err
	}
	if err := agent.Start(); err != nil {
		return err
	}
	e.Defer(func() {
		_ = agent.Process.Signal(syscall.SIGTERM) // it may have ended: Wait tells
		if err := agent.Wait(); err != nil {
			e.T().Log("the agent:", err, logs)
		}
		_ = os.RemoveAll(short) // only litter would be left
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	address := regexp.MustCompile(`http://\S+`).FindString(line)
	if address == "" {
		return fmt.Errorf("the agent said %q: %w\n%s", line, err, logs)
	}
	e.Setenv("DROVER_ADDR", address)
	return nil
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
