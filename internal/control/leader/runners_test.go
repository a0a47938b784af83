package leader

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drover"
	"drover/internal/control/store"
)

func TestUsedRunnersAreBounded(t *testing.T) {
	t.Parallel()
	s := store.New()
	now := time.Unix(100_000, 0)
	txn := s.Begin(1)
	txn.PutJob(&drover.Job{Namespace: "default", ID: "env", Type: drover.JobTypeService, TaskGroups: []*drover.TaskGroup{{Name: "g", Pool: &drover.WarmPool{Size: 1}}}})
	put := func(id string, ago time.Duration, status string) {
		txn.PutAllocation(&drover.Allocation{
			ID: id, Namespace: "default", JobID: "env", TaskGroup: "g", NodeID: "n", ClientStatus: status,
			Claim: &drover.Claim{}, ModifyTime: now.Add(-ago).UnixNano(),
		})
	}
	for i := range 6 {
		put(fmt.Sprint("used", i), time.Duration(i+2)*time.Minute, drover.AllocClientComplete)
	}
	put("just", 30*time.Second, drover.AllocClientComplete)
	put("busy", 30*time.Minute, drover.AllocClientRunning)
	txn.Commit()
	reaped := Garbage(s.Snapshot(), now, GCConfig{Runners: 2}.withDefaults())
	require.Len(t, reaped, 1)
	require.Equal(t, []string{"used2", "used3", "used4", "used5"}, reaped[0].Allocs, "the newest stay, and what is in use")
	require.Empty(t, Garbage(s.Snapshot(), now, GCConfig{}.withDefaults()))
}
