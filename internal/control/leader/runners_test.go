package leader

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
)

func TestUsedRunnersAreBounded(t *testing.T) {
	t.Parallel()
	s := store.New()
	now := time.Unix(100_000, 0)
	txn := s.Begin(1)
	txn.PutJob(&drover.Job{
		Namespace: "default", ID: "env", Type: drover.JobTypeService,
		TaskGroups: []*drover.TaskGroup{{Name: "g", Pool: &drover.WarmPool{Size: 1}}},
	})
	put := func(id string, ago time.Duration, status string) {
		txn.PutAllocation(&drover.Allocation{
			ID: id, EvalID: "of-" + id, Namespace: "default", JobID: "env", TaskGroup: "g", NodeID: "n", ClientStatus: status,
			Claim: &drover.Claim{}, ModifyTime: now.Add(-ago).UnixNano(),
		})
	}
	for i := range 6 {
		put(fmt.Sprint("used", i), time.Duration(i+2)*time.Minute, drover.AllocClientComplete)
	}
	put("used4", 6*time.Minute, drover.AllocClientComplete)
	stopped := *txn.Allocation("used4")
	stopped.Claim, stopped.DesiredStatus = nil, drover.AllocDesiredStop // released before its claim was recorded
	txn.PutAllocation(&stopped)
	put("just", runnerRest-time.Second, drover.AllocClientComplete)
	put("busy", 30*time.Minute, drover.AllocClientRunning)
	eval := func(id string, ago time.Duration, status string) {
		txn.PutEvaluation(&drover.Evaluation{ID: id, Namespace: "default", JobID: "env", Status: status, ModifyTime: now.Add(-ago).UnixNano()})
	}
	for i := range 4 {
		eval(fmt.Sprint("filled", i), time.Duration(i+2)*time.Minute, drover.EvalComplete)
	}
	eval("of-used0", time.Hour/2, drover.EvalComplete)
	eval("blocked", time.Hour/2, drover.EvalBlocked)
	txn.Commit()
	for name, reap := range map[string]func(*store.Snapshot, time.Time, GCConfig) []*command.Reap{"all": Garbage, "used only": Used} {
		reaped := reap(s.Snapshot(), now, GCConfig{Runners: 2}.withDefaults())
		require.Len(t, reaped, 2, name)
		require.Equal(t, []string{"used2", "used3", "used4", "used5"}, reaped[0].Allocs, "the newest stay, and what is in use")
		require.Equal(t, []string{"filled2", "filled3"}, reaped[1].Evals, "the newest stay, and of what something is left")
		require.Empty(t, reap(s.Snapshot(), now, GCConfig{}.withDefaults()), name)
	}
}
