package executor

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exec/ledger"
)

// manyEnded is a service with so many ended executions of 100 environments.
func manyEnded(t testing.TB, n int) *Executor {
	t.Helper()
	s, err := New(Config{}, Deps{Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(s.stop)
	now := time.Now()
	for i := range n {
		env := fmt.Sprint("e", i%100)
		x := execution.Execution{
			ID: fmt.Sprint("x", i), RunnerID: env + "-a", AllocID: "a", Spec: execution.Spec{Argv: []string{"sh", "-c", "exit 1"}},
			Receipt: &execution.Receipt{Cause: execution.CauseExited, ExitCode: i % 2, StartedAt: now.Add(time.Duration(i%7) * -time.Second)},
		}
		s.keep(s.restore(ledger.Record{Execution: x, Environment: env, EndedAt: now}))
	}
	return s
}

func everything(string) bool { return true }

// TestAListOfManyIsAPage: what is not on the page is not kept, but counted.
func TestAListOfManyIsAPage(t *testing.T) {
	t.Parallel()
	s := manyEnded(t, 20_000)
	q := execution.ListQuery{PerPage: 50, Exit: "1"}
	page, err := s.SelectExecutions(t.Context(), q, everything)
	require.NoError(t, err)
	require.Len(t, page.Items, 50)
	require.Equal(t, 10_000, page.Total)
}

func BenchmarkAListOfMany(b *testing.B) {
	s := manyEnded(b, 100_000)
	for _, q := range []execution.ListQuery{{PerPage: 50}, {PerPage: 50, Words: []string{"exit", "x99"}, Sort: "-memory"}} {
		b.Run(fmt.Sprint(q.Words), func(b *testing.B) {
			for b.Loop() {
				_, _ = s.SelectExecutions(b.Context(), q, everything)
			}
		})
	}
}
