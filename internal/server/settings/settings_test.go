package settings

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/control/leader"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/control/planner"
	"github.com/drover-project/drover/internal/control/raftlog"
	"github.com/drover-project/drover/internal/node/fingerprint"
	"github.com/drover-project/drover/internal/node/machine"
)

// What the configuration leaves out is 0, which is the leader's own default; a lone server waits for nobody after a failover.
func TestLeader(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Server = &config.Server{}
	require.Equal(t, leader.Config{}, Leader(cfg))
	cfg.Server = &config.Server{Enabled: new(true), NumSchedulers: new(3), MinHeartbeatTTL: "5s", JobGCInterval: "1m", EvalGC: "2h"}
	require.Equal(t, leader.Config{
		Schedulers: 3, HeartbeatTTL: 5 * time.Second, GC: leader.GCConfig{Interval: time.Minute, Evals: 2 * time.Hour},
	}, Leader(cfg))
	cfg.Server.RejectionTracker = &config.RejectionTracker{Enabled: new(true)}
	require.Equal(t, planner.Rejections{Threshold: 100, Window: 5 * time.Minute}, Leader(cfg).Plans.Rejections)
	cfg.Server.RejectionTracker = &config.RejectionTracker{Threshold: 7}
	require.Zero(t, Leader(cfg).Plans.Rejections, "it is not enabled")
	cfg.Server.BootstrapExpect = new(3)
	require.Equal(t, 5*time.Minute, Leader(cfg).FailoverTTL)
}

// A key that is left out is 0, which is the log's own default.
func TestLog(t *testing.T) {
	t.Parallel()
	require.Equal(t, raftlog.Config{DataDir: "/d"}, Log(&config.Server{}, "/d"))
	require.Equal(t,
		raftlog.Config{DataDir: "/d", Patience: 3, SnapshotInterval: time.Minute, SnapshotThreshold: 100, TrailingLogs: 10},
		Log(&config.Server{RaftMultiplier: 3, RaftSnapshotInterval: "1m", RaftSnapshotThreshold: 100, RaftTrailingLogs: 10}, "/d"))
}

// Allocations of system jobs preempt others unless the configuration says otherwise.
func TestScheduler(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cfg  config.SchedulerConfig
		want drover.SchedulerConfiguration
	}{
		{config.SchedulerConfig{}, drover.SchedulerConfiguration{PreemptionConfig: drover.PreemptionConfig{SystemSchedulerEnabled: true}}},
		{
			config.SchedulerConfig{Algorithm: "spread", PauseBroker: new(true), Preemption: &config.Preemption{Batch: new(true)}},
			drover.SchedulerConfiguration{
				SchedulerAlgorithm: "spread", PauseEvalBroker: true,
				PreemptionConfig: drover.PreemptionConfig{SystemSchedulerEnabled: true, BatchSchedulerEnabled: true},
			},
		},
		{
			config.SchedulerConfig{Preemption: &config.Preemption{System: new(false), Service: new(true)}},
			drover.SchedulerConfiguration{PreemptionConfig: drover.PreemptionConfig{ServiceSchedulerEnabled: true}},
		},
	} {
		require.Equal(t, c.want, Scheduler(&c.cfg))
	}
}

func TestAutopilot(t *testing.T) {
	t.Parallel()
	require.Equal(t, cluster.DefaultAutopilot(), Autopilot(nil))
	require.Equal(t, cluster.DefaultAutopilot(), Autopilot(&config.Autopilot{}))
	got := Autopilot(&config.Autopilot{
		Cleanup: new(false), MaxTrailingLogs: new(7), MinQuorum: 3, LastContactThreshold: "1s", StabilizationTime: "2s", Zones: new(true),
		NoMigration: new(true),
	})
	want := cluster.DefaultAutopilot()
	want.CleanupDeadServers, want.MaxTrailingLogs, want.MinQuorum = false, 7, 3
	want.LastContactThreshold, want.ServerStabilizationTime = time.Second, 2*time.Second
	want.EnableRedundancyZones, want.DisableUpgradeMigration = true, true
	require.Equal(t, want, got)
}

// What is advertised to gossip has the port at which it listens unless it names another, and neighbours are watched more closely.
func TestGossip(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Addresses, cfg.Ports.Serf = &config.Addresses{Serf: "127.0.0.1"}, 4000
	require.Equal(t, members.Config{Bind: "127.0.0.1:4000", DataDir: "/d", Pace: members.Local}, Gossip(cfg, "/d"))
	cfg.Addresses.Serf, cfg.Server.RejoinAfterLeave = "192.0.2.1", new(true)
	for advertised, want := range map[string]string{
		"": "", "203.0.113.5": "203.0.113.5:4000", "203.0.113.5:1": "203.0.113.5:1", "server.example": "server.example:4000",
	} {
		cfg.Advertise = &config.Addresses{Serf: advertised}
		require.Equal(t, members.Config{Bind: "192.0.2.1:4000", Rejoin: true, Advertise: want}, Gossip(cfg, ""), advertised)
	}
}

// Ports that are reserved of the machine and of its networks are one list.
func TestNode(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Name, cfg.Dev = "n1", true
	cfg.Client.HostNetworks = []*config.HostNetwork{{Name: "inner", CIDR: "10.0.0.0/8"}, {Name: "outer", ReservedPorts: "80,443"}}
	cfg.Client.HostVolumes = []*config.HostVolume{{Name: "data", Path: "/srv", ReadOnly: new(true)}}
	p := Process{DataDir: "/d", HTTPAddr: "192.0.2.1:4646", SharedCores: true, Forgetful: true, Clock: clock.Wall{}}
	got, err := Node(cfg, p)
	require.NoError(t, err)
	require.Equal(t, "80,443", got.ReservedPorts)
	require.Equal(t, map[string]*drover.HostNetworkInfo{
		"inner": {Name: "inner", CIDR: "10.0.0.0/8"}, "outer": {Name: "outer", ReservedPorts: "80,443"},
	}, got.HostNetworks)
	require.Equal(t, map[string]*drover.HostVolumeInfo{"data": {Path: "/srv", ReadOnly: true}}, got.HostVolumes)
	require.Equal(t, "/d/host_volume_plugins", got.VolumePluginDir)
	require.Equal(t, []any{"n1", "/d", "192.0.2.1:4646", true, true, true},
		[]any{got.Name, got.DataDir, got.HTTPAddr, got.Cores.None, got.InMemory, got.StopOnExit})

	cfg.Client.Reserved = &config.Reserved{CPU: 100, MemoryMB: 200, ReservedPorts: "22"}
	got, err = Node(cfg, p)
	require.NoError(t, err)
	require.Equal(t, "22,80,443", got.ReservedPorts)
	require.Equal(t, drover.Capacity{CPU: 100, MemoryMB: 200}, got.Reserved)

	cfg.Client.ReservableCores, cfg.Client.Reserved.Cores, cfg.Client.AddressFamily = "0-3", "0", fingerprint.IPv6
	p.SharedCores = false
	got, err = Node(cfg, p)
	require.NoError(t, err)
	require.Equal(t, []uint16{1, 2, 3}, got.Cores.Lent(8))
	require.Equal(t, fingerprint.IPv6, got.Family)

	cfg.Client.NetworkInterface = "no-such-0"
	_, err = Node(cfg, p)
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	require.ErrorContains(t, err, "client.network_interface: ")
}

func TestMachine(t *testing.T) {
	t.Parallel()
	require.Equal(t, machine.Config{
		BootProbe: "true", PowerOff: []string{"poweroff"}, Idle: time.Minute, Busy: time.Hour, ProbeEvery: 2 * time.Second,
	}, Machine(&config.Machine{BootProbe: "true", PowerOff: []string{"poweroff"}, DeadAfter: "1m", DeadBusy: "1h", ProbeEvery: "2s"}))
}

// Only what the configuration bounds is bounded.
func TestLimits(t *testing.T) {
	t.Parallel()
	require.Nil(t, Limits(&config.Limits{TokenBurst: 5}))
	got := Limits(&config.Limits{TokenRate: 1, TokenBurst: 2})
	require.NotNil(t, got.Tokens)
	require.Nil(t, got.Addresses)
	got = Limits(&config.Limits{AddressRate: 1})
	require.Nil(t, got.Tokens)
	require.NotNil(t, got.Addresses)
}
