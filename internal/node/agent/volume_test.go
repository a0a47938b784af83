package agent

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// A node that was away, and whose allocation counts as lost, still has to end it when the next writer of the volume comes.
func TestAWriterWaitsForTheOneBefore(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.cfg.HostVolumes = map[string]*drover.HostVolumeInfo{"data": {Path: t.TempDir(), ID: "v"}, "static": {Path: t.TempDir()}}
		b.start()
		next := uint64(0)
		writer := func(n int, source, mode string) *drover.Allocation {
			a := b.alloc(n, "service")
			next++
			a.CreateIndex = next
			a.Job.TaskGroups[0].Volumes = map[string]*drover.VolumeRequest{"d": {Type: "host", Source: source, AccessMode: mode}}
			return a
		}
		runs := func(a *drover.Allocation) bool {
			return b.control.alloc(a.ID).ClientStatus == drover.AllocClientRunning
		}
		one := writer(1, "data", drover.AccessSingleWriter)
		b.control.assign(one)
		sleep(20 * time.Millisecond)
		two, three, four := writer(2, "data", drover.AccessMultiWriter), writer(3, "static", drover.AccessSingleWriter), writer(4, "other", "")
		b.control.assign(two, three, four)
		sleep(time.Minute)
		require.True(t, runs(one))
		require.False(t, runs(two), "it waits")
		require.True(t, runs(three) && runs(four), "they write something else")
		stopped := *b.control.alloc(one.ID)
		stopped.DesiredStatus, stopped.AllocModifyIndex = "stop", 4
		b.control.assign(&stopped)
		sleep(time.Second)
		require.False(t, runs(one))
		require.True(t, runs(two))
	})
}
