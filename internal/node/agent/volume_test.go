package agent

import (
	"archive/tar"
	"context"
	"io"
	"strings"
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
				ended := b.control.alloc(a.ID)
				require.Equal(t, drover.AllocClientComplete, ended.ClientStatus, name)
				require.Equal(t, map[string]string{
					"fails": "in 5 tries: the node is away", "garbles": "in 5 tries: reading the snapshot: unexpected EOF",
					"drips": "it was not there after 2m0s", "hangs": "",
				}[name], why(ended, drover.TaskDiskNotTakenOver), name)
			})
		})
	}
}

// why is the last part of the event of the type in the task's history; "" if there is none.
func why(a *drover.Allocation, event string) string {
	for _, e := range a.TaskStates["t1"].Events {
		if e.Type == event {
			_, reason, _ := strings.Cut(e.DisplayMessage, "is not on the disk: ")
			return reason
		}
	}
	return ""
}

// What may pass by itself is tried again, after one, two and four seconds; what cannot, is not.
func TestADiskThatCannotBeHadYet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code   drover.Code
		tries  int
		within time.Duration
	}{{drover.Internal, 4, 7 * time.Second}, {drover.NotFound, 1, 0}} {
		t.Run(string(c.code), func(t *testing.T) {
			bubble(t, func(t *testing.T, b *bundle) {
				var at []time.Time
				b.signs = &migrating{b.control, func(_ context.Context, w io.Writer) error {
					if at = append(at, time.Now()); len(at) < 4 {
						return drover.Errorf(c.code, "not now")
					}
					return tar.NewWriter(w).Close()
				}}
				b.start()
				a := b.alloc(1, "service")
				a.PreviousAllocation = id.NewSeeded(7).New()
				a.Job.TaskGroups[0].EphemeralDisk = &drover.EphemeralDisk{Migrate: true, SizeMB: 60}
				b.control.assign(a)
				sleep(time.Minute)
				require.NotNil(t, b.world.Running("t1"))
				require.Len(t, at, c.tries)
				require.Equal(t, c.within, at[len(at)-1].Sub(at[0]))
				require.Equal(t, c.code == drover.NotFound, why(b.control.alloc(a.ID), drover.TaskDiskNotTakenOver) != "")
			})
		})
	}
}
