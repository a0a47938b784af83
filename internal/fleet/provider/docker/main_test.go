package docker_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// Of the daemon and the machines of all tests.
var endpoint, binary, network string //nolint:gochecknoglobals // made by TestMain

// TestMain starts a docker daemon for the tests, and stops it. They need root and Debian's docker.io and busybox-static
// (scripts/deps). Whoever cannot have these says so: DROVER_TEST_DOCKER=off leaves the package's tests out.
func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if os.Getenv("DROVER_TEST_DOCKER") == "off" {
		fmt.Println("the docker provider is NOT TESTED: DROVER_TEST_DOCKER=off")
		return 0
	}
	dir, err := os.MkdirTemp("", "drover-dockerfleet-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	command := func(name string, args ...string) string {
		cmd := exec.Command(name, args...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, e := cmd.CombinedOutput()
		if e != nil && err == nil {
			err = fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), e, out)
		}
		return string(out)
	}
	defer command("../../../../scripts/docker", "stop", dir)
	lines := strings.Fields(command("../../../../scripts/docker", "start", dir))
	if err == nil {
		endpoint, binary = lines[len(lines)-1], filepath.Join(dir, "agent")
		network = "drvfl" + dir[max(0, len(dir)-8):]
		command("go", "build", "-o", binary, "./testdata/agent")
		command("docker", "-H", endpoint, "network", "create", "-o", "com.docker.network.bridge.name="+network, network)
	}
	if err != nil {
		fmt.Printf("%v\nto leave these tests out, set DROVER_TEST_DOCKER=off\n", err)
		return 1
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Println(err)
		code = 1
	}
	return code
}
