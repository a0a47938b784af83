package raftlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/invariant"
)

// Deps are what the log works with.
type Deps struct {
	FSM *fsm.FSM
	// Fresh makes another, empty state machine. It is needed once, by a data folder of a server that was alone under the id
	// that all of those had, when others are to reach it. May be nil where that cannot be.
	Fresh func() *fsm.FSM
	Log   *slog.Logger
	Clock clock.Clock
}

// Log is the replicated log. Its methods may be called by several goroutines at once.
type Log struct {
	cfg       Config
	log       *slog.Logger
	clock     clock.Clock
	raft      *raft.Raft
	machine   *machine
	health    *health
	address   raft.ServerAddress
	transport *transport
	close     []func() error // in order, after raft stopped
	ended     chan struct{}  // closed when raft has stopped: it answers nobody any more
	asked     questions      // that raft has not answered yet
	readyIn   atomic.Uint64  // the term in which Ready was answered
	terms     terms          // that Follow runs
	once      sync.Once
	closed    error
}

// Open opens the log, replays it into the FSM and starts raft's own goroutines, which Close ends. The log is
// writable when WaitLeader returns.
// Errors: Conflict if another process has it open; Invalid if the log or every snapshot is damaged, with what and
// where.
func Open(cfg Config, deps Deps) (*Log, error) { return open(cfg, deps, openStores) }

// opener opens the stores; tests give ones that fail.
type opener func(*Config, *health, clock.Clock, *logger) (*stores, error)

func open(cfg Config, deps Deps, o opener) (*Log, error) {
	if err := cfg.Validate(); err != nil {
		return nil, drover.Errorf(drover.Invalid, "raft: %w", err)
	}
	l := &Log{cfg: cfg, log: deps.Log, clock: deps.Clock, health: newHealth(), ended: make(chan struct{})}
	l.machine = &machine{fsm: deps.FSM, health: l.health, log: deps.Log}
	if !cfg.alone() {
		l.machine.recent = &recent{}
	}
	if err := l.open(deps, o); err != nil {
		return nil, errors.Join(err, l.closeAll())
	}
	return l, nil
}

func (l *Log) open(deps Deps, o opener) error {
	logger := newLogger(deps.Log, deps.Clock)
	s, err := o(&l.cfg, l.health, deps.Clock, logger)
	if err != nil {
		return err
	}
	l.close = append(l.close, s.close)
	transport, err := openTransport(&l.cfg, deps.Clock, logger)
	if err != nil {
		return err
	}
	l.close = append([]func() error{transport.close}, l.close...)
	l.transport, l.address = transport, transport.LocalAddr()
	rc := raftConfig(&l.cfg, logger)
	if err := l.begin(rc, s, transport, deps); err != nil {
		return err
	}
	err = guarded(func() (err error) {
		l.raft, err = raft.NewRaft(rc, l.machine, s.log, s.stable, s.snapshots, transport)
		return err
	})
	if err != nil {
		return l.startError(err, s, logger)
	}
	transport.raft.Store(l.raft)
	logger.outages.servers.Store(new(func() []raft.Server { return l.raft.GetConfiguration().Configuration().Servers }))
	only, err := l.onlyVoter()
	if err == nil && only {
		transport.elect()
	}
	return err
}

// startError explains why raft does not start. It panics when the log does not begin where the newest good snapshot
// ends, and says why a snapshot is not good only in its log.
func (l *Log) startError(err error, s *stores, logger *logger) error {
	if errors.Is(err, errPanicked) {
		first, _ := s.log.FirstIndex() // it was read before
		err = fmt.Errorf("no good snapshot reaches up to entry %d, where the log begins: %w", first, err)
	}
	if why := logger.lastError(); why != "" {
		err = fmt.Errorf("%w (%s)", err, why)
	}
	return drover.Errorf(drover.Invalid, "starting raft: %w", err)
}

// Run blocks until ctx ends and then closes the log. Beside raft, which counts entries, it has a snapshot written when
// the log has grown by many bytes: what a restart has to read is bounded.
func (l *Log) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-l.health.tooLarge.C():
			for l.behind() && clock.Sleep(ctx, l.clock, time.Second) { // it has just begun, and nothing of the log is applied yet
			}
			if ctx.Err() != nil {
				break
			}
			if err := l.Snapshot(); err != nil {
				l.log.Warn("the log is large", "error", err)
			}
		}
	}
	return l.Close()
}

// behind reports whether the state has nothing that the newest snapshot lacks.
func (l *Log) behind() bool { s := l.Stats(); return s.AppliedIndex <= s.SnapshotIndex }

// Close stops raft and closes the files. Proposals under way are answered before, if that takes no more than a moment, or
// fail with Unavailable; new ones fail with it at once. It may be called twice.
func (l *Log) Close() error {
	l.once.Do(func() { l.closed = l.closeAll() })
	return l.closed
}

func (l *Log) closeAll() error {
	var errs []error
	if l.raft != nil {
		l.asked.end(l.clock)
		stopping := l.raft.Shutdown()
		l.health.shut() // raft may be waiting for space on the disk
		errs = append(errs, stopping.Error())
	}
	close(l.ended)
	for _, f := range l.close {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// Propose appends the command and waits until it is applied here. Many callers at once share disk writes. The index is that of
// the state with the command. The error is the command's own, or one of these. NotLeader: ask the server in the message.
// Exhausted: the disk is full. Unavailable: leadership was lost meanwhile, and the command may or may not be applied later.
// Canceled: ctx ended first, or this program cannot read what stands before it in the log; it may or may not be applied, too.
// TooLarge.
func (l *Log) Propose(ctx context.Context, c command.Command) (index uint64, result any, err error) {
	data, err := command.Encode(c)
	if err != nil {
		return 0, nil, err
	}
	if err := ctx.Err(); err != nil {
		return 0, nil, drover.Errorf(drover.Canceled, "proposing %s: %w", c.Kind(), err)
	}
	if err := l.health.writable(); err != nil && (l.cfg.alone() || l.IsLeader()) { // else it says who leads
		return 0, nil, err
	}
	if err := l.allowed(c); err != nil {
		return 0, nil, err
	}
	var f raft.ApplyFuture
	err = l.wait(ctx, func() error {
		f = l.raft.ApplyLog(raft.Log{Data: data}, enqueueTimeout)
		return f.Error()
	})
	if err != nil {
		return 0, nil, l.proposalError(c, err)
	}
	a := f.Response().(answer)
	if a.lost {
		return 0, nil, a.err
	}
	checkStored(c, a.index, l.machine.fsm.Store().Index())
	return a.index, a.value, a.err
}

// checkStored: the state has what is about to be answered.
func checkStored(c command.Command, answered, known uint64) {
	if known < answered {
		invariant.Breach(invariant.AcknowledgedWrites, c.Kind().String(), "entry %d is answered, and the state has index %d", answered, known)
	}
}

// enqueueTimeout bounds how long raft may be too busy to take a proposal (its disk hangs).
const enqueueTimeout = 10 * time.Second

// wait calls f but does not wait longer than for ctx or for raft: what it has in its queues when it stops may stay
// there without an answer.
func (l *Log) wait(ctx context.Context, f func() error) error {
	if !l.asked.begin() {
		return raft.ErrRaftShutdown
	}
	done := make(chan error, 1)
	go func() { // ends when raft answers
		defer l.asked.answered()
		done <- f()
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.ended:
	}
	select {
	case err := <-done: // it was answered before
		return err
	default:
		return raft.ErrRaftShutdown
	}
}

// proposalError says how a proposal failed. That writes are refused it says only of one that was certainly not taken: by a
// server that does not lead, or by its disk.
func (l *Log) proposalError(c command.Command, err error) error {
	sick := l.health.writable()
	switch {
	case errors.Is(err, raft.ErrLeadershipLost) || errors.Is(err, raft.ErrAbortedByRestore):
		return drover.Errorf(drover.Unavailable, "leadership was lost while proposing %s; it may still be applied: %w", c.Kind(), err)
	case errors.Is(err, raft.ErrRaftShutdown):
		return drover.Errorf(drover.Unavailable, "proposing %s: the log is closed: %w", c.Kind(), err)
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return drover.Errorf(drover.Canceled, "waiting for %s to be applied: %w", c.Kind(), err)
	case errors.Is(err, raft.ErrNotLeader) || errors.Is(err, raft.ErrLeadershipTransferInProgress):
		if sick != nil && l.cfg.alone() { // it stepped down because its disk refused an entry
			return sick
		}
		return l.notLeader()
	case sick != nil:
		return sick
	}
	return drover.Errorf(drover.Unavailable, "proposing %s: %w", c.Kind(), err)
}

func (l *Log) notLeader() error {
	if address, id := l.raft.LeaderWithID(); id != "" {
		return drover.Errorf(drover.NotLeader, "server %s at %s is the leader", id, address)
	}
	return drover.Errorf(drover.NotLeader, "no cluster leader")
}

// Barrier waits until everything that was committed before is applied here. Errors: as of Propose.
func (l *Log) Barrier(ctx context.Context) error {
	if err := l.wait(ctx, func() error { return l.raft.Barrier(enqueueTimeout).Error() }); err != nil {
		return l.proposalError(&command.Barrier{}, err)
	}
	return nil
}

// Snapshot writes a snapshot now, so that the log behind it can be dropped. Nothing new is no error.
func (l *Log) Snapshot() error {
	err := l.raft.Snapshot().Error()
	if err == nil || errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return nil
	}
	return drover.Errorf(drover.Unavailable, "writing a snapshot: %w", err)
}

func raftConfig(cfg *Config, logger *logger) *raft.Config {
	rc := raft.DefaultConfig()
	rc.LocalID = raft.ServerID(cfg.ID)
	rc.Logger = logger
	rc.NoLegacyTelemetry = true
	// Not BatchApplyCh: what is in the buffer when raft shuts down is never answered. Without it, callers that wait
	// are still taken together.
	rc.MaxAppendEntries = 512
	rc.SnapshotInterval, rc.SnapshotThreshold = cfg.SnapshotInterval, cfg.SnapshotThreshold
	rc.TrailingLogs = cfg.TrailingLogs
	rc.HeartbeatTimeout, rc.ElectionTimeout, rc.LeaderLeaseTimeout = silence, silence, silence
	if !cfg.alone() {
		rc.HeartbeatTimeout, rc.ElectionTimeout, rc.LeaderLeaseTimeout = sharedSilence, sharedSilence, sharedLease
	}
	for _, d := range []*time.Duration{&rc.HeartbeatTimeout, &rc.ElectionTimeout, &rc.LeaderLeaseTimeout} {
		*d *= time.Duration(cfg.Patience)
	}
	return rc
}

// silence is how long a follower hears nothing of its leader until it stands for election. It then waits as long for votes, and
// a leader that reaches no quorum goes on leading as long. It is also how often a server looks at its lease: with 50 ms that
// was most of what an idle agent woke up for. And a lone server waits as long before it elects itself again after its disk
// refused an entry.
const silence = time.Second

// Of a log that is shared: others notice a leader's death after one to two times the silence, and a leader that reaches no
// quorum stops before they can have another.
const (
	sharedSilence = 600 * time.Millisecond
	sharedLease   = 500 * time.Millisecond
)
