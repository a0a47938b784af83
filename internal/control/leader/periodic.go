package leader

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/intake"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/wake"
)

// periodic knows when which job is due. Jobs come from the fsm's observer.
type periodic struct {
	changed wake.Signal // a job is dirty

	mu    sync.Mutex // guards the rest
	dirty map[drover.NamespacedID]*drover.Job
	due   map[drover.NamespacedID]*dueJob
}

// dueJob is a periodic job and its next launch.
type dueJob struct {
	job *drover.Job
	at  time.Time // zero = never
}

// newPeriodic returns one that knows no jobs; they come from the observer, and from restore when a term begins.
func newPeriodic() *periodic {
	return &periodic{
		changed: wake.NewSignal(), dirty: map[drover.NamespacedID]*drover.Job{}, due: map[drover.NamespacedID]*dueJob{},
	}
}

// forget forgets all jobs: restore tells of those of the state when the next term begins.
func (p *periodic) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.dirty)
	clear(p.due)
}

// jobChanged does not block; the loop looks at the job later.
func (p *periodic) jobChanged(key drover.NamespacedID, now *drover.Job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if (now == nil || !now.Periodical()) && p.due[key] == nil && p.dirty[key] == nil {
		return
	}
	p.dirty[key] = now
	p.changed.Send()
}

// update works changed jobs in.
func (p *periodic) update(s *store.Snapshot, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, j := range p.dirty {
		switch known := p.due[key]; {
		case j == nil || !j.Periodical() || j.Stop:
			delete(p.due, key)
		case known == nil:
			p.due[key] = &dueJob{j, missed(s, j, now)}
		case known.job.JobModifyIndex != j.JobModifyIndex:
			p.due[key] = &dueJob{j, intake.NextLaunch(j.Periodic, now)}
		default:
			known.job = j
		}
	}
	clear(p.dirty)
}

// missed returns when a job that this leader sees for the first time is due: in the past if a launch was missed
// since its last one, or since it was registered.
func missed(s *store.Snapshot, j *drover.Job, now time.Time) time.Time {
	last := time.Unix(0, j.SubmitTime)
	prefix := j.ID + "/periodic-"
	for child := range s.Jobs(j.Namespace, prefix) {
		if sec, err := strconv.ParseInt(strings.TrimPrefix(child.ID, prefix), 10, 64); err == nil {
			if at := time.Unix(sec, 0); at.After(last) {
				last = at
			}
		}
	}
	if last.After(now) {
		last = now
	}
	return intake.NextLaunch(j.Periodic, last)
}

// take returns the jobs that are due, with their next launch set, and how long until the next may be.
func (p *periodic) take(now time.Time) (launch []dueJob, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	wait = time.Hour
	for _, d := range p.due {
		if !d.at.IsZero() && !d.at.After(now) {
			launch = append(launch, *d)
			d.at = intake.NextLaunch(d.job.Periodic, now)
		}
		if !d.at.IsZero() {
			wait = min(wait, d.at.Sub(now))
		}
	}
	return launch, max(wait, 0)
}

// retry makes the job due again for the same launch.
func (p *periodic) retry(d dueJob) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.due[d.job.Key()]; now != nil {
		now.at = d.at
	}
}

// runPeriodic launches periodic jobs when they are due.
func (l *Leader) runPeriodic(ctx context.Context, _ Log) {
	for {
		now := l.deps.Clock.Now()
		l.periodic.update(l.deps.Store.Snapshot(), now)
		launch, wait := l.periodic.take(now)
		for _, d := range launch {
			if !l.launch(ctx, d) {
				l.periodic.retry(d)
				wait = min(wait, retryDelay)
			}
		}
		if !clock.Await(ctx, l.deps.Clock, wait, l.periodic.changed.C()) {
			return
		}
	}
}

// launch reports whether the launch is settled: done, skipped, or refused for good.
func (l *Leader) launch(ctx context.Context, d dueJob) bool {
	if d.job.Periodic.ProhibitOverlap && l.childRuns(d.job) {
		l.deps.Logger.Debug("periodic launch skipped: the last one still runs", "job", d.job.ID)
		return true
	}
	err := l.deps.Launch(ctx, d.job.Namespace, d.job.ID, d.at)
	if err == nil || ctx.Err() != nil {
		return true
	}
	l.deps.Logger.Error("cannot launch periodic job", "job", d.job.ID, "namespace", d.job.Namespace, "error", err)
	code := drover.CodeOf(err)
	return code != drover.Unavailable && code != drover.Exhausted && code != drover.NotLeader
}

// childRuns reports whether an earlier launch has not ended. Launches that an operator forced count too.
func (l *Leader) childRuns(j *drover.Job) bool {
	for child := range l.deps.Store.Snapshot().Jobs(j.Namespace, j.ID+"/periodic-") {
		if child.ParentID == j.ID && child.Status != drover.JobStatusDead {
			return true
		}
	}
	return false
}
