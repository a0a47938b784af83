package config

import (
	"cmp"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/optional"
)

// RejectionTracker takes nodes out of service for which plans are refused again and again, five within half an hour at most. An
// operator finds out why, and lets them take work again with "drover node eligibility -enable".
type RejectionTracker struct {
	Enabled   *bool    `hcl:"enabled,optional"`        // count them; default false
	Threshold int      `hcl:"node_threshold,optional"` // refusals; default 100
	Window    string   `hcl:"node_window,optional"`    // within which they are counted; duration; default 5m
	Rest      hcl.Body `hcl:",remain" json:"-"`
}

// Rejections are how many refusals within which time take a node out of service; 0 is never.
func (s *Server) Rejections() (threshold int, window time.Duration) {
	t := s.RejectionTracker
	if t == nil || !optional.Value(t.Enabled) {
		return 0, 0
	}
	return cmp.Or(t.Threshold, 100), Duration(t.Window, 5*time.Minute)
}

// leastSnapshotInterval is the least time between two looks whether a snapshot of the log is due.
const leastSnapshotInterval = 5 * time.Millisecond

// tuningProblems are those of keys that bound jobs, schedulers, events and the log.
func (s *Server) tuningProblems(p *problems) {
	most := cmp.Or(s.JobMaxPriority, drover.DefaultMaxPriority)
	p.check(most >= drover.DefaultMaxPriority && most <= drover.MaxPriority, "server.job_max_priority", "must be from %d to %d, got %d",
		drover.DefaultMaxPriority, drover.MaxPriority, most)
	usual := cmp.Or(s.JobDefaultPriority, drover.DefaultPriority)
	p.check(usual > 0 && usual < most, "server.job_default_priority", "must be from 1 to below job_max_priority (%d), got %d", most, usual)
	p.check(s.JobTrackedVersions >= 0 && s.JobTrackedVersions <= mostVersions, "server.job_tracked_versions",
		"must be from 1 to %d, got %d", mostVersions, s.JobTrackedVersions)
	kept, err := time.ParseDuration(s.TokenGC)
	p.check(err != nil || kept > 0, "server.acl_token_gc_threshold", "must be above 0s, got %q: expired tokens stay for a while, so that "+
		"a leader whose clock jumped takes none away that others honour; leave it out for 1h", s.TokenGC)
	threshold, window := s.Rejections()
	p.check(threshold >= 0 && threshold <= 100_000, "server.plan_rejection_tracker.node_threshold",
		"must be from 1 to 100000, got %d", threshold)
	p.check(threshold == 0 || window > 0, "server.plan_rejection_tracker.node_window", "must be above 0s")
	p.check(s.EventBufferSize >= 0, "server.event_buffer_size", "must not be negative, got %d", s.EventBufferSize)
	for _, t := range s.EnabledSchedulers {
		known := []string{drover.JobTypeService, drover.JobTypeBatch, drover.JobTypeSystem, drover.JobTypeSysBatch, drover.JobTypeCore}
		p.check(slices.Contains(known, t), "server.enabled_schedulers", "must be of service, batch, system and sysbatch, got %q", t)
	}
	p.check(s.RaftMultiplier >= 0 && s.RaftMultiplier <= 10, "server.raft_multiplier", "must be from 1 to 10, got %d", s.RaftMultiplier)
	p.check(s.RaftProtocol == 0 || s.RaftProtocol == 3, "server.raft_protocol", "only 3 can be had, got %d", s.RaftProtocol)
	p.check(s.RaftSnapshotThreshold >= 0, "server.raft_snapshot_threshold", "must not be negative, got %d", s.RaftSnapshotThreshold)
	p.check(s.RaftTrailingLogs >= 0, "server.raft_trailing_logs", "must not be negative, got %d", s.RaftTrailingLogs)
	if every := Duration(s.RaftSnapshotInterval, 0); every != 0 {
		p.check(every >= leastSnapshotInterval, "server.raft_snapshot_interval", "must be at least %s, got %s", leastSnapshotInterval, every)
	}
}

// NoEvents reports whether the event stream is switched off.
func (s *Server) NoEvents() bool { return s.EventBroker != nil && !*s.EventBroker }

// mostVersions of one job that can be kept: each is as large as its job, in memory.
const mostVersions = 1000

// Schedulers are the types of jobs that are computed; nil for all of them. What collects garbage is always there.
func (s *Server) Schedulers() []string {
	return slices.DeleteFunc(slices.Clone(s.EnabledSchedulers), func(t string) bool { return t == drover.JobTypeCore })
}
