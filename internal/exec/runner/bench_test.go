package runner_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/exec/exectest"
	"github.com/drover-project/drover/internal/exec/runner"
)

// stocked is a service with a warm runner for each round.
func stocked(b *testing.B) *runner.Service {
	b.Helper()
	c := exectest.NewControl()
	c.StopRefill()
	s, _ := exectest.Start(b, c, journalIn(b.TempDir()))
	exectest.Put(b, s, "python", 0)
	for range b.N {
		c.Add("python")
	}
	exectest.AwaitWarm(b, s, b.N)
	return s
}

func BenchmarkClaim(b *testing.B) {
	s := stocked(b)
	b.ResetTimer()
	for range b.N {
		if _, err := s.Claim(b.Context(), claimReq("python")); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCycle is what this package does for one cycle of a client: it claims a runner, executes in it, releases it.
func BenchmarkCycle(b *testing.B) {
	s := stocked(b)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		r, err := s.Claim(b.Context(), claimReq("python"))
		require.NoError(b, err)
		use, err := s.Use(b.Context(), r.ID)
		require.NoError(b, err)
		use.Done()
		require.NoError(b, s.Release(b.Context(), r.ID))
	}
}
