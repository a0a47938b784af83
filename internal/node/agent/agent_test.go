package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/node/allocrunner/allocrunnertest"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/localstate"
	"github.com/drover-project/drover/internal/validation"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type bundle struct {
	t       *testing.T
	control *control
	signs   exchange.Controller // in control's place
	world   *allocrunnertest.Driver
	state   localstate.Store
	devices Devices
	clouds  Clouds
	machine Machine
	fails   string // how Run ends
	cfg     Config
	agent   *Agent
	end     context.CancelFunc
	ran     chan struct{}
}

func newBundle(t *testing.T) *bundle {
	return &bundle{
		t: t, control: newControl(), world: allocrunnertest.New(clock.Wall{}), state: localstate.NewMemory(),
		cfg: Config{DataDir: t.TempDir(), NodeID: id.NewSeeded(1).New()},
	}
}

func (b *bundle) start() *bundle {
	var c exchange.Controller = b.control
	if b.signs != nil {
		c = b.signs
	}
	a, err := New(b.cfg, Deps{
		Controller: c, Drivers: []driver.Driver{b.world}, Clock: clock.Wall{}, IDs: id.Random{},
		Log: slog.New(slog.DiscardHandler), State: b.state, Devices: b.devices, Clouds: b.clouds, Machine: b.machine,
	})
	require.NoError(b.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	b.agent, b.end, b.ran = a, cancel, make(chan struct{})
	go func() { // ends with the test
		defer close(b.ran)
		if err := a.Run(ctx); err != nil && err.Error() != b.fails {
			b.t.Error(err)
		}
	}()
	b.t.Cleanup(b.leave)
	synctest.Wait()
	return b
}

func (b *bundle) leave() {
	b.end()
	<-b.ran
}

func (b *bundle) alloc(n int, kind string) *drover.Allocation {
	j := &drover.Job{
		ID: fmt.Sprintf("j%d", n), Type: kind,
		TaskGroups: []*drover.TaskGroup{
			{Name: "g", Tasks: []*drover.Task{{Name: fmt.Sprintf("t%d", n), Driver: "fake", Config: map[string]any{}}}},
		},
	}
	j.Canonicalize()
	return &drover.Allocation{
		ID: id.NewSeeded(uint64(100 + n)).New(), Name: j.ID + ".g[0]", JobID: j.ID, Job: j, TaskGroup: "g", CreateTime: time.Now().UnixNano(),
		DesiredStatus: "run", ClientStatus: "pending", AllocModifyIndex: 1,
	}
}

func bubble(t *testing.T, f func(t *testing.T, b *bundle)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(t, newBundle(t)) })
}

func sleep(d time.Duration) {
	time.Sleep(d) // simulated
	synctest.Wait()
}

func TestRegistersAndBeats(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.start()
		n := b.control.node
		require.Equal(t, b.agent.NodeID(), n.ID)
		require.NotEmpty(t, n.SecretID)
		require.Equal(t, "1", n.Attributes["driver.fake"])
		require.Equal(t, "blue", n.Attributes["driver.fake.colour"])
		require.NotEmpty(t, n.ComputedClass)
		require.Positive(t, n.Total().CPU)
		require.Len(t, n.NodeResources.Cpu.ReservableCpuCores, runtime.NumCPU())
		sleep(time.Minute)
		registered, beats := b.control.counts()
		require.InDelta(t, 12, beats, 1)
		require.Equal(t, 1, registered)
		b.control.mu.Lock()
		b.control.node = nil // control forgot it
		b.control.mu.Unlock()
		sleep(10 * time.Second)
		registered, _ = b.control.counts()
		require.Equal(t, 2, registered)
	})
}

func TestCoresThatCannotBeKept(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.cfg.Cores.None = true
		b.start()
		require.Empty(t, b.control.node.NodeResources.Cpu.ReservableCpuCores)
		require.Positive(t, b.control.node.NodeResources.Cpu.TotalCpuCores)
	})
}

// client.reserved.cores: a core that is kept is lent to nobody, and its part of the CPU is kept, too.
func TestCoresThatAreKept(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.cfg.Cores.But, b.cfg.Reserved.CPU = validation.IDs{{0, 0}}, 7
		b.start()
		n := b.control.node
		require.Len(t, n.NodeResources.Cpu.ReservableCpuCores, runtime.NumCPU()-1)
		require.NotContains(t, n.NodeResources.Cpu.ReservableCpuCores, uint16(0))
		require.Equal(t, strconv.Itoa(runtime.NumCPU()-1), n.Attributes["cpu.reservablecores"])
		kept := 7 + n.NodeResources.Cpu.CpuShares/int64(runtime.NumCPU())
		require.EqualValues(t, kept, n.ReservedResources.Cpu.CpuShares)
		require.EqualValues(t, kept, n.Reserved.CPU)
	})
}

func TestRunsWhatIsAssigned(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.start()
		one := b.alloc(1, "batch")
		b.control.assign(one)
		sleep(20 * time.Millisecond)
		require.Equal(t, "running", b.control.alloc(one.ID).ClientStatus)
		b.world.Running("t1").End(driver.Exit{})
		sleep(20 * time.Millisecond)
		require.Equal(t, "complete", b.control.alloc(one.ID).ClientStatus)
		sleep(time.Hour)
		require.Equal(t, []string{"start t1", "end t1", "destroy t1"}, b.world.Journal())
	})
}

func TestStopsWhatIsNotListed(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.start()
		one, two := b.alloc(1, "service"), b.alloc(2, "service")
		b.control.assign(one, two)
		sleep(20 * time.Millisecond)
		b.control.drop(one.ID)
		stopped := *two
		stopped.DesiredStatus, stopped.AllocModifyIndex = "stop", 2
		b.control.assign(&stopped)
		sleep(20 * time.Millisecond)
		require.Nil(t, b.world.Running("t1"))
		require.Nil(t, b.world.Running("t2"))
		require.Equal(t, "complete", b.control.alloc(two.ID).ClientStatus)
		require.NoError(t, b.agent.CollectGarbage(context.Background(), ""))
		sleep(20 * time.Millisecond)
		_, err := b.agent.ListFolder(context.Background(), one.ID, "/")
		require.Equal(t, drover.NotFound, drover.CodeOf(err))
	})
}

func TestRefusesWhatCannotRun(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.start()
		stopped, broken, used, evil := b.alloc(1, "batch"), b.alloc(2, "batch"), b.alloc(3, "service"), b.alloc(4, "batch")
		stopped.DesiredStatus = "stop"
		broken.TaskGroup = "nope"
		used.Job.TaskGroups[0].Pool = &drover.WarmPool{Size: 1}
		used.Claim = &drover.Claim{RunnerID: "r"}
		evil.ID = "../../etc"
		b.control.assign(stopped, broken, used, evil)
		sleep(5 * time.Second)
		require.Equal(t, "complete", b.control.alloc(stopped.ID).ClientStatus)
		for _, a := range []*drover.Allocation{broken, used, evil} {
			require.Equal(t, "failed", b.control.alloc(a.ID).ClientStatus)
			require.Equal(t, []string{"failed"}, b.control.statuses(a.ID))
		}
		require.Empty(t, b.world.Journal())
	})
}

func TestPushPriorities(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.start()
		one := b.alloc(1, "service")
		b.control.assign(one)
		sleep(5 * time.Second)
		before := b.control.pushed()
		at := time.Now()
		require.NoError(t, b.agent.SignalTask(context.Background(), one.ID, "", "HUP")) // an event: not urgent
		synctest.Wait()
		require.Equal(t, before, b.control.pushed())
		sleep(time.Second)
		require.Equal(t, before+1, b.control.pushed())
		require.Equal(t, time.Second, b.control.pushTime(before).Sub(at))
		sleep(50 * time.Millisecond)
		require.NoError(t, b.agent.SignalTask(context.Background(), one.ID, "", "HUP"))
		b.world.Running("t1").End(driver.Exit{Code: 1}) // running → pending is urgent, and takes the event along
		synctest.Wait()
		require.Equal(t, before+2, b.control.pushed())
		require.Equal(t, at.Add(time.Second+50*time.Millisecond), b.control.pushTime(before+1))
	})
}

func TestUpdatesAreKeptWhileControlIsAway(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.start()
		one, two := b.alloc(1, "batch"), b.alloc(2, "batch")
		b.control.assign(one, two)
		sleep(20 * time.Millisecond)
		b.control.goAway(drover.Errorf(drover.Unavailable, "away"))
		b.world.Running("t1").End(driver.Exit{})
		sleep(time.Minute)
		b.world.Running("t2").End(driver.Exit{})
		sleep(time.Minute)
		require.Equal(t, "running", b.control.alloc(one.ID).ClientStatus)
		b.control.goAway(nil)
		sleep(15 * time.Second)
		require.Equal(t, "complete", b.control.alloc(one.ID).ClientStatus)
		require.Equal(t, "complete", b.control.alloc(two.ID).ClientStatus)
	})
}

func TestASlowControlHoldsNobodyUp(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.start()
		b.control.slow = make(chan struct{})
		var all []*drover.Allocation
		for i := range 20 {
			all = append(all, b.alloc(i, "batch"))
		}
		b.world.Instant = true
		b.control.assign(all...)
		sleep(time.Minute)
		ends := strings.Count(strings.Join(b.world.Journal(), " "), "end ")
		require.Equal(t, 20, ends)
		close(b.control.slow)
		sleep(2 * time.Second)
		for _, a := range all {
			require.Equal(t, "complete", b.control.alloc(a.ID).ClientStatus)
		}
		require.LessOrEqual(t, b.control.pushed(), 4) // coalesced
	})
}

func TestAgentRestartReattaches(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.start()
		one, two, three := b.alloc(1, "service"), b.alloc(2, "batch"), b.alloc(3, "batch")
		b.control.assign(one, two, three)
		sleep(20 * time.Millisecond)
		second := b.world.Running("t2")
		b.world.Running("t3").End(driver.Exit{})
		sleep(20 * time.Millisecond)
		b.leave()
		second.End(driver.Exit{})
		b.control.goAway(drover.Errorf(drover.Unavailable, "away"))
		b.start()
		sleep(time.Minute)
		require.NotNil(t, b.world.Running("t1"))
		b.control.goAway(nil)
		sleep(20 * time.Second)
		require.Equal(t, "complete", b.control.alloc(two.ID).ClientStatus)
		require.Equal(t, "running", b.control.alloc(one.ID).ClientStatus)
		require.Equal(t, 1, strings.Count(strings.Join(b.world.Journal(), " "), "start t1"))
		require.Equal(t, 1, strings.Count(strings.Join(b.world.Journal(), " "), "start t2"))
		require.Equal(t, 1, strings.Count(strings.Join(b.world.Journal(), " "), "start t3"))
	})
}

func TestStopOnExit(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.cfg.StopOnExit, b.cfg.InMemory = true, true
		b.start()
		one := b.alloc(1, "service")
		one.Job.TaskGroups[0].ShutdownDelay = new(time.Hour)
		b.control.assign(one)
		sleep(20 * time.Millisecond)
		b.leave()
		require.Equal(t, []string{"start t1", "stop t1", "end t1", "destroy t1"}, b.world.Journal())
		require.Equal(t, "complete", b.control.alloc(one.ID).ClientStatus)
	})
}

// TestAnAgentThatEndsFinishesWhatItStops, for a while; what takes longer is stopped by the next one.
func TestAnAgentThatEndsFinishesWhatItStops(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.start()
		stubborn := func(n int, timeout time.Duration) *drover.Allocation {
			a := b.alloc(n, "service")
			a.Job.TaskGroups[0].Tasks[0].Config["stubborn"] = true
			a.Job.TaskGroups[0].Tasks[0].KillTimeout = &timeout
			return a
		}
		short, long, other := stubborn(1, 2*time.Second), stubborn(2, 20*time.Second), b.alloc(3, "service")
		b.control.assign(short, long, other)
		sleep(20 * time.Millisecond)
		for _, a := range []*drover.Allocation{short, long} {
			gone := *a
			gone.DesiredStatus, gone.AllocModifyIndex = "stop", 2
			b.control.assign(&gone)
		}
		sleep(20 * time.Millisecond)
		asked := time.Now()
		b.leave()
		require.InDelta(t, stopPatience, time.Since(asked), float64(time.Second))
		require.Equal(t, "complete", b.control.alloc(short.ID).ClientStatus)
		require.Equal(t, "running", b.control.alloc(long.ID).ClientStatus)
		require.NotNil(t, b.world.Running("t3"), "what nobody stops outlives the agent")
		b.start()
		sleep(time.Minute)
		require.Equal(t, "complete", b.control.alloc(long.ID).ClientStatus)
		require.Equal(t, "running", b.control.alloc(other.ID).ClientStatus)
	})
}

func TestGarbageByCountAndAge(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.cfg.GC = GCConfig{MaxAllocs: 2, MaxAge: time.Hour, DiskPercent: 101, InodePercent: 101}
		b.world.Instant = true
		b.start()
		var ids []string
		for i := range 4 {
			a := b.alloc(i, "batch")
			ids = append(ids, a.ID)
			b.control.assign(a)
			sleep(time.Minute)
		}
		for i, kept := range []bool{false, false, true, true} {
			_, err := b.agent.ListFolder(context.Background(), ids[i], "alloc/logs")
			require.Equal(t, kept, err == nil, "%d: %v", i, err)
		}
		sleep(2 * time.Hour)
		records, err := b.state.Load()
		require.NoError(t, err)
		require.Empty(t, records)
	})
}

func TestGarbageByDiskKeepsLogsAsLongAsConfigured(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.cfg.GC = GCConfig{MaxAllocs: 1, MinAge: 10 * time.Minute, DiskPercent: 0.001}
		b.world.Instant = true
		b.start()
		one, two := b.alloc(1, "batch"), b.alloc(2, "batch")
		b.control.assign(one)
		b.control.assign(two)
		there := func(a *drover.Allocation) bool {
			_, err := b.agent.ListFolder(context.Background(), a.ID, "alloc/logs")
			return err == nil
		}
		sleep(9 * time.Minute)
		require.True(t, there(one))
		require.True(t, there(two))
		sleep(3 * time.Minute)
		require.False(t, there(one))
		require.False(t, there(two), "the disk is fuller than it may be")
	})
}

func TestStopOnClientAfter(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.start()
		one, two := b.alloc(1, "service"), b.alloc(2, "service")
		one.Job.TaskGroups[0].Disconnect = &drover.DisconnectStrategy{StopOnClientAfter: time.Minute}
		b.control.assign(one, two)
		sleep(20 * time.Millisecond)
		b.control.goAway(drover.Errorf(drover.Unavailable, "away"))
		sleep(50 * time.Second)
		require.NotNil(t, b.world.Running("t1"))
		sleep(time.Minute)
		require.Nil(t, b.world.Running("t1"))
		require.NotNil(t, b.world.Running("t2"))
	})
}

func TestStats(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.cfg.PublishAllocMetrics = true
		b.start()
		one := b.alloc(1, "service")
		b.control.assign(one)
		sleep(10*time.Second + 500*time.Millisecond)
		u, err := b.agent.AllocStats(context.Background(), one.ID, "")
		require.NoError(t, err)
		require.Equal(t, uint64(10), u.ResourceUsage.MemoryStats.RSS)
		age := time.Since(time.Unix(0, u.Timestamp))                                // it says when it was taken
		require.InDelta(t, 450*time.Millisecond, age, float64(60*time.Millisecond)) // tasks are sampled in lots of 100 ms
		_, err = b.agent.NodeStats(context.Background())
		require.Equal(t, drover.NotImplemented, drover.CodeOf(err))
		_, err = b.agent.StartExecution(context.Background(), one.ID, "", execution.Spec{})
		require.Equal(t, drover.NotImplemented, drover.CodeOf(err))
		_, err = b.agent.Files(one.ID, "nope").List(context.Background(), execution.FileRequest{})
		require.Equal(t, drover.NotFound, drover.CodeOf(err))
	})
}

func TestIdentityIsKept(t *testing.T) {
	t.Parallel()
	cfg := Config{DataDir: t.TempDir()}.withDefaults()
	one, err := ReadIdentity(cfg, id.Random{})
	require.NoError(t, err)
	two, err := ReadIdentity(cfg, id.Random{})
	require.NoError(t, err)
	require.Equal(t, one, two)
	cfg.NodeID = id.Random{}.New()
	three, err := ReadIdentity(cfg, id.Random{})
	require.NoError(t, err)
	require.Equal(t, cfg.NodeID, three.ID)
	require.Equal(t, one.Secret, three.Secret)
}

func TestConfigValidate(t *testing.T) {
	t.Parallel()
	err := Config{NodeID: "x", CPUMHz: -1}.Validate()
	require.ErrorContains(t, err, "data_dir")
	require.ErrorContains(t, err, "node id")
	require.ErrorContains(t, err, "cpu_total_compute")
}

func TestStickyDiskIsTakenOver(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.start()
		one := b.alloc(1, "service")
		one.Job.TaskGroups[0].EphemeralDisk.Sticky = true
		b.control.assign(one)
		sleep(20 * time.Millisecond)
		require.NoError(t, os.WriteFile(filepath.Join(b.world.Running("t1").Spec.Dirs.Local, "x"), []byte("kept"), 0o600))
		two := *one
		two.ID, two.PreviousAllocation, two.AllocModifyIndex = id.NewSeeded(500).New(), one.ID, 3
		b.control.assign(&two)
		sleep(time.Minute)
		require.Equal(t, one.ID, b.world.Running("t1").Spec.AllocID) // the new one waits
		stopped := *b.control.alloc(one.ID)
		stopped.DesiredStatus, stopped.AllocModifyIndex = "stop", 4
		b.control.assign(&stopped)
		sleep(20 * time.Millisecond)
		now := b.world.Running("t1").Spec
		require.Equal(t, two.ID, now.AllocID)
		data, err := os.ReadFile(filepath.Join(now.Dirs.Local, "x"))
		require.NoError(t, err)
		require.Equal(t, "kept", string(data))
	})
}

func TestAnOlderStateIsNotBelievedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.start()
		one := b.alloc(1, "service")
		b.control.assign(one)
		sleep(20 * time.Millisecond)
		b.control.rewind()
		sleep(5 * time.Second)
		require.NotNil(t, b.world.Running("t1"))
		sleep(time.Minute)
		require.Nil(t, b.world.Running("t1"))
	})
}
