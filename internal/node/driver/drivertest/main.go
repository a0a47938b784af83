package drivertest

import (
	"testing"

	"go.uber.org/goleak"
)

// Main runs the tests of a package that starts sandboxes: it removes the groups that earlier runs left, and fails for goroutines that the
// tests leave. The one that forks into an empty mount namespace is the process's.
func Main(m *testing.M) {
	SweepGroupParents()
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/drover-project/drover/internal/node/supervisor/spawn.(*bare).run"))
}
