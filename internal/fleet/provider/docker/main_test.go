package docker_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/drover-project/drover/internal/dockerdtest"
)

// Of the daemon and the machines of all tests.
var endpoint, binary, network string // made by TestMain

// TestMain starts a docker daemon for the tests, and stops it. They need root and Debian's docker.io and busybox-static
// (scripts/deps). Whoever cannot have these says so: DROVER_TEST_DOCKER=off leaves the package's tests out.
func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if dockerdtest.Off() {
		fmt.Println("the docker provider is NOT TESTED: DROVER_TEST_DOCKER=off")
		return 0
	}
	daemon, err := dockerdtest.Start()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer func() { _ = daemon.Stop() }() // what is left is told by the next run
	endpoint, binary = daemon.Endpoint, filepath.Join(daemon.Dir, "agent")
	network = "drvfl" + daemon.Dir[max(0, len(daemon.Dir)-8):]
	build := exec.Command("go", "build", "-o", binary, "./testdata/agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Printf("building the agent: %v\n%s", err, out)
		return 1
	}
	if _, err := daemon.Docker("network", "create", "-o", "com.docker.network.bridge.name="+network, network); err != nil {
		fmt.Println(err)
		return 1
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Println(err)
		code = 1
	}
	return code
}
