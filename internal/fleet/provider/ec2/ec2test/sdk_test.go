package ec2test_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheSDKAgrees runs the module that has Amazon's SDK judge the emulator. Its client of EC2 is compiled without the optimizer and the
// race detector, which takes less than half of the time.
func TestTheSDKAgrees(t *testing.T) {
	t.Parallel()
	judge := exec.Command("go", "test", "-count=1", "-gcflags=github.com/aws/aws-sdk-go-v2/service/ec2=-N -l", ".")
	judge.Dir, judge.Env = "sdk", append(os.Environ(), "CGO_ENABLED=0")
	out, err := judge.CombinedOutput()
	require.NoError(t, err, string(out))
	t.Log(string(out))
}
