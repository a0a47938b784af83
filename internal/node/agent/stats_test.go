package agent

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/node/driver"
)

// Nothing is collected while nobody wants it: a request reads each running task once, and no more follows from it.
func TestNothingIsSampledForNobody(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.start()
		one, two := b.alloc(1, "service"), b.alloc(2, "service")
		b.control.assign(one, two)
		sleep(time.Hour)
		require.NotNil(t, b.world.Running("t1"))
		require.Zero(t, b.world.Samples(), "nobody asked")
		for asked := 1; asked <= 3; asked++ {
			u, err := b.agent.AllocStats(context.Background(), one.ID, "")
			require.NoError(t, err)
			require.Equal(t, time.Now().UnixNano(), u.Timestamp)
			require.Equal(t, asked, b.world.Samples())
			sleep(time.Hour)
			require.Equal(t, asked, b.world.Samples(), "the request is over")
		}
	})
}

// With published metrics each running task is read once an interval, a request reads nothing more, and the reading ends
// with the task.
func TestSamplingEndsWithTheTask(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.cfg.PublishAllocMetrics = true
		b.start()
		one := b.alloc(1, "batch")
		b.control.assign(one)
		sleep(10*time.Second + 500*time.Millisecond)
		before := b.world.Samples()
		require.InDelta(t, 10, before, 1.5)
		_, err := b.agent.AllocStats(context.Background(), one.ID, "")
		require.NoError(t, err)
		require.Equal(t, before, b.world.Samples())
		b.world.Running("t1").End(driver.Exit{})
		sleep(time.Second)
		ended := b.world.Samples()
		sleep(time.Hour)
		require.Equal(t, ended, b.world.Samples())
	})
}

// What people set of a node's meta at runtime is seen by the tasks that start after it.
func TestTasksSeeMetaSetAtRuntime(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.cfg.Meta = map[string]string{"rack": "r1", "old": "x"}
		b.control.meta = map[string]*string{"rack": new("r2"), "old": nil}
		b.start()
		one := b.alloc(1, "service")
		one.Job.TaskGroups[0].Tasks[0].Env = map[string]string{"RACK": "${meta.rack}"}
		b.control.assign(one)
		sleep(time.Second)
		require.Equal(t, "r2", b.world.Running("t1").Spec.Env["RACK"])
		require.Equal(t, map[string]string{
			"rack": "r1", "old": "x", "connect.log_level": "info", "connect.proxy_concurrency": "1",
		}, b.agent.Node().Meta, "it registers with its own, and with what every node of Nomad has")
		require.NotContains(t, b.agent.nodeForTasks().Meta, "old")
	})
}
