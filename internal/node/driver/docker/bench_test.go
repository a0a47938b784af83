package docker

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

// BenchmarkStart starts and destroys warm runners.
func BenchmarkStart(b *testing.B) {
	d := newBench(b)
	for b.Loop() {
		spec := d.spec(b, nil)
		spec.Pool = true
		h, err := d.Start(b.Context(), spec)
		require.NoError(b, err)
		b.StopTimer()
		require.NoError(b, h.Destroy(b.Context()))
		b.StartTimer()
	}
}

// BenchmarkExec is /bin/true through the supervisor, to its exit.
func BenchmarkExec(b *testing.B) {
	h := newBench(b).warm(b, nil)
	for b.Loop() {
		r := drivertest.Do(b, h, execution.Spec{Argv: []string{"/bin/true"}})
		require.Zero(b, r.Receipt.ExitCode)
	}
}

// BenchmarkDockerExec is the same through docker exec, the command line included.
func BenchmarkDockerExec(b *testing.B) {
	h := newBench(b).warm(b, nil)
	for b.Loop() {
		out, err := exec.Command("docker", "-H", endpoint, "exec", h.box.id, "/bin/true").CombinedOutput()
		require.NoError(b, err, string(out))
	}
}

// BenchmarkUsage is one sample; a thousand tasks need a thousand a second.
func BenchmarkUsage(b *testing.B) {
	h := newBench(b).warm(b, nil)
	for b.Loop() {
		_, err := h.Usage(b.Context())
		require.NoError(b, err)
	}
}
