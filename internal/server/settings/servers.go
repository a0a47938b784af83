package settings

import (
	"net"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/control/leader"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/control/planner"
	"github.com/drover-project/drover/internal/control/raftlog"
	"github.com/drover-project/drover/internal/optional"
)

// Leader is what the leader works with; 0 stands for the leader's own default.
func Leader(agent *config.Agent) leader.Config {
	cfg := agent.Server
	var failover time.Duration // of a lone server there is none: its nodes are connected to it
	if agent.Clustered() {
		failover = cfg.FailoverTTL()
	}
	var plans planner.Config
	plans.Rejections.Threshold, plans.Rejections.Window = cfg.Rejections()
	return leader.Config{
		Plans:          plans,
		FailoverTTL:    failover,
		Schedulers:     optional.Value(cfg.NumSchedulers),
		Types:          cfg.Schedulers(),
		HeartbeatTTL:   config.Duration(cfg.MinHeartbeatTTL, 0),
		HeartbeatGrace: config.Duration(cfg.HeartbeatGrace, 0),
		GC: leader.GCConfig{
			Interval: config.Duration(cfg.JobGCInterval, 0),
			Evals:    config.Duration(cfg.EvalGC, 0), BatchEvals: config.Duration(cfg.BatchEvalGC, 0), Jobs: config.Duration(cfg.JobGC, 0),
			Nodes: config.Duration(cfg.NodeGC, 0), Deployments: config.Duration(cfg.DeploymentGC, 0),
		},
	}
}

// Log is the log in the folder; 0 stands for the log's own default.
func Log(cfg *config.Server, folder string) raftlog.Config {
	return raftlog.Config{
		DataDir: folder, Patience: cfg.RaftMultiplier, SnapshotInterval: config.Duration(cfg.RaftSnapshotInterval, 0),
		SnapshotThreshold: uint64(cfg.RaftSnapshotThreshold), TrailingLogs: uint64(cfg.RaftTrailingLogs), // not negative: it was validated
	}
}

// Scheduler is the scheduler's configuration that is stored while none is.
func Scheduler(cfg *config.SchedulerConfig) drover.SchedulerConfiguration {
	out := drover.SchedulerConfiguration{
		SchedulerAlgorithm: cfg.Algorithm, MemoryOversubscriptionEnabled: optional.Value(cfg.Oversubscribe),
		RejectJobRegistration: optional.Value(cfg.RejectJobs), PauseEvalBroker: optional.Value(cfg.PauseBroker),
	}
	out.PreemptionConfig.SystemSchedulerEnabled = true // as when nobody says otherwise
	if p := cfg.Preemption; p != nil {
		out.PreemptionConfig = drover.PreemptionConfig{
			SystemSchedulerEnabled: p.System == nil || *p.System, SysBatchSchedulerEnabled: optional.Value(p.SysBatch),
			BatchSchedulerEnabled: optional.Value(p.Batch), ServiceSchedulerEnabled: optional.Value(p.Service),
		}
	}
	return out
}

// Autopilot is how servers are kept healthy while nothing is stored.
func Autopilot(c *config.Autopilot) cluster.Autopilot {
	out := cluster.DefaultAutopilot()
	if c == nil {
		return out
	}
	if c.Cleanup != nil {
		out.CleanupDeadServers = *c.Cleanup
	}
	if c.MaxTrailingLogs != nil {
		out.MaxTrailingLogs = uint64(max(0, *c.MaxTrailingLogs)) // checked
	}
	out.MinQuorum = uint(max(0, c.MinQuorum)) // checked
	out.LastContactThreshold = config.Duration(c.LastContactThreshold, out.LastContactThreshold)
	out.ServerStabilizationTime = config.Duration(c.StabilizationTime, out.ServerStabilizationTime)
	out.EnableRedundancyZones, out.DisableUpgradeMigration = optional.Value(c.Zones), optional.Value(c.NoMigration)
	out.EnableCustomUpgrades = optional.Value(c.CustomUpgrades)
	return out
}

// Gossip is how this server gossips, and keeps in the folder what it has to remember. On loopback others are neighbours, and failures are
// noticed sooner.
func Gossip(cfg *config.Agent, folder string) members.Config {
	out := members.Config{Bind: cfg.SerfAddress(), DataDir: folder, Rejoin: optional.Value(cfg.Server.RejoinAfterLeave)}
	host, port, _ := net.SplitHostPort(out.Bind) // made of the two
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		out.Pace = members.Local
	}
	if adv := cfg.Advertise; adv != nil && adv.Serf != "" {
		out.Advertise = adv.Serf
		if _, _, err := net.SplitHostPort(adv.Serf); err != nil {
			out.Advertise = net.JoinHostPort(adv.Serf, port)
		}
	}
	return out
}
