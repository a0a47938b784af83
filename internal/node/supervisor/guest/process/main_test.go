package process

import (
	"bufio"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/supervisor/spawn"
)

// reaping is the reaper of this test process: it has all of its children, so that no test uses os/exec.
var reaping = NewReaper() // of the process

const patience = 30 * time.Second

func TestMain(m *testing.M) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	go func() { // ends with the process
		for range ended {
			_, _ = w.Write([]byte{1})
		}
	}()
	go reaping.Run(r) // ends with the process
	code := m.Run()
	if !KillAll(reaping, clock.Wall{}) {
		code = 1
	}
	os.Exit(code)
}

// program is a running one with its ends of stdin and stdout.
type program struct {
	*Child
	in  *os.File
	out *bufio.Reader
}

// start runs a program, which is killed with its group at the end of the test.
func start(t testing.TB, killGroup bool, env []string, argv ...string) *program {
	t.Helper()
	return startWith(t, killGroup, append([]string{"PATH=/usr/bin:/bin"}, env...), argv...)
}

// startWith is start in exactly that environment.
func startWith(t testing.TB, killGroup bool, env []string, argv ...string) *program {
	t.Helper()
	theirIn, ourIn, err := os.Pipe()
	require.NoError(t, err)
	ourOut, theirOut, err := os.Pipe()
	require.NoError(t, err)
	c, err := reaping.Start(spawn.Spec{
		Path: argv[0], Argv: argv, Env: env,
		Files: []int{int(theirIn.Fd()), int(theirOut.Fd()), int(theirOut.Fd())},
	}, killGroup)
	require.NoError(t, err)
	require.NoError(t, theirIn.Close())
	require.NoError(t, theirOut.Close())
	t.Cleanup(func() {
		reaping.Signal(c, syscall.SIGKILL)
		_ = ourIn.Close() // it may be closed
		_ = ourOut.Close()
	})
	return &program{c, ourIn, bufio.NewReader(ourOut)}
}

func sh(t testing.TB, script string) *program {
	t.Helper()
	return start(t, true, nil, "/bin/sh", "-c", script)
}

func (p *program) line(t testing.TB) string {
	t.Helper()
	text, err := p.out.ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(text)
}

func (p *program) wait(t testing.TB) {
	t.Helper()
	select {
	case <-p.Done:
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
}
