package agent

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/id"
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

// migrating is control that hands on data.
type migrating struct {
	*control

	fetch func(ctx context.Context, w io.Writer) error
}

func (m *migrating) Fetch(ctx context.Context, _, _ string, w io.Writer) error {
	return m.fetch(ctx, w)
}

// What cannot be had of another node keeps no allocation from its start, and what comes too slowly not for long; who waits can be stopped.
func TestADiskThatCannotBeHadIsEmpty(t *testing.T) {
	t.Parallel()
	hangs := func(ctx context.Context, _ io.Writer) error {
		<-ctx.Done()
		return ctx.Err()
	}
	for name, fetch := range map[string]func(ctx context.Context, w io.Writer) error{
		"fails": func(context.Context, io.Writer) error { return drover.Errorf(drover.Unavailable, "the node is away") },
		"garbles": func(_ context.Context, w io.Writer) error {
			_, err := w.Write(make([]byte, 4096)[:700])
			return err
		},
		"drips": func(ctx context.Context, w io.Writer) error {
			_, _ = w.Write([]byte("x"))
			return hangs(ctx, w)
		},
		"hangs": hangs,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *bundle) {
				b.signs = &migrating{b.control, fetch}
				b.start()
				a := b.alloc(1, "service")
				a.PreviousAllocation = id.NewSeeded(7).New()
				a.Job.TaskGroups[0].EphemeralDisk = &drover.EphemeralDisk{Migrate: true, SizeMB: 60}
				b.control.assign(a)
				sleep(100 * time.Second)
				require.Equal(t, name == "fails" || name == "garbles", b.world.Running("t1") != nil, name)
				sleep(time.Minute)
				require.Equal(t, name != "hangs", b.world.Running("t1") != nil, name)
				stopped := *b.control.alloc(a.ID)
				stopped.DesiredStatus, stopped.AllocModifyIndex = "stop", 4
				b.control.assign(&stopped)
				sleep(time.Minute)
				require.Nil(t, b.world.Running("t1"), name)
				require.Equal(t, drover.AllocClientComplete, b.control.alloc(a.ID).ClientStatus, name)
			})
		})
	}
}
