package fsm

import (
	"reflect"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/optional"
)

// registerJob stores a job's specification and returns the stored version. The job is canonical and valid already.
// Errors: Invalid without a job or in an unknown namespace, Conflict if the enforced index differs. Registering
// forgives quick ends, so that a corrected job starts without the delay of its predecessor.
func (e *entry) registerJob(c *command.RegisterJob) (*drover.Job, error) {
	if c.Job == nil {
		return nil, drover.Errorf(drover.Invalid, "registering: no job")
	}
	if e.txn.Namespace(c.Job.Namespace) == nil {
		return nil, drover.Errorf(drover.Invalid, "job %q is in nonexistent namespace %q", c.Job.ID, c.Job.Namespace)
	}
	old := e.txn.Job(c.Job.Namespace, c.Job.ID)
	if c.EnforceIndex {
		if err := checkJobIndex(old, c.JobModifyIndex); err != nil {
			return nil, err
		}
	}
	j := e.storeJob(old, c.Job, c.Time)
	e.pruneVersions(j, c.Versions)
	j = e.redemand(j)
	e.txn.ForgetQuickEnds(j.Namespace, j.ID)
	if c.Eval != nil {
		ev := *c.Eval
		ev.JobModifyIndex = j.JobModifyIndex
		e.putEval(ev)
	}
	e.putEvals(c.Evals)
	if c.Scaling != nil {
		e.keepScaling(j, c.Scaling)
		if old != nil && old.Stable && old.CreateIndex == j.CreateIndex && !j.Stable { // another count is as proven as the one before
			j = e.stabilize(j)
		}
	}
	// Only here it is known which version the source became.
	if c.Submission != nil {
		s := *c.Submission
		s.Namespace, s.JobID, s.Version, s.JobModifyIndex = j.Namespace, j.ID, j.Version, e.index
		e.txn.PutJobSubmission(&s)
	} else if c.Scaling != nil && old != nil {
		e.keepSource(old, j)
	}
	return j, nil
}

// dispatchJob registers a child of a parameterized job once for each idempotency token: as long as a child with the
// token is stored, alive or dead, it is the answer, and nothing changes. The log's order decides between dispatches of
// several servers. Errors: as registerJob.
func (e *entry) dispatchJob(c *command.DispatchJob) (*drover.Job, error) {
	if j := c.Register.Job; j != nil && j.DispatchIdempotencyToken != "" {
		if first := e.txn.DispatchedJob(j.Namespace, j.ParentID, j.DispatchIdempotencyToken); first != nil {
			return first, nil
		}
	}
	return e.registerJob(&c.Register)
}

// checkJobIndex compares the job's index with what the caller expects; 0 means that the job must not exist. The prefix
// is Nomad's: its command line recognizes this error by it.
func checkJobIndex(old *drover.Job, want uint64) error {
	const prefix = "Enforcing job modify index"
	switch {
	case want == 0 && old != nil:
		return drover.Errorf(drover.Conflict, "%s 0: job already exists", prefix)
	case want != 0 && old == nil:
		return drover.Errorf(drover.Conflict, "%s %d: job does not exist", prefix, want)
	case old != nil && old.JobModifyIndex != want:
		return drover.Errorf(drover.Conflict, "%s %d: job exists with conflicting job modify index: %d", prefix, want, old.JobModifyIndex)
	}
	return nil
}

// storeJob stores spec as the job's next version, or as the same version if nothing changed in it.
func (e *entry) storeJob(old, spec *drover.Job, now int64) *drover.Job {
	j := *spec
	j.CreateIndex, j.ModifyIndex, j.JobModifyIndex = e.index, e.index, e.index
	j.Version, j.Stable, j.VersionTag = 0, j.Stop && spec.Stable, nil // a revert to a stop has no roll-out to prove it
	if j.SubmitTime == 0 {
		j.SubmitTime = now
	}
	j.Status, j.StatusDescription = drover.JobStatusPending, ""
	if old != nil {
		j.CreateIndex, j.Status, j.StatusDescription = old.CreateIndex, old.Status, old.StatusDescription
		// A registration without a change is no new version. Its index stays too, so that an enforced index still
		// holds.
		if SameSpec(old, &j) {
			j.Version, j.JobModifyIndex, j.SubmitTime = old.Version, old.JobModifyIndex, old.SubmitTime
			j.Stable, j.VersionTag = old.Stable, old.VersionTag
		} else {
			j.Version = old.Version + 1
		}
	}
	e.putJob(&j)
	e.countChild(&j, old, &j)
	return &j
}

// stabilize marks the version that this entry stored as stable, and returns the copy that it stores.
func (e *entry) stabilize(j *drover.Job) *drover.Job {
	next := *j
	next.Stable = true
	e.putJob(&next)
	return &next
}

// SameSpec compares what a user decides about a job.
func SameSpec(a, b *drover.Job) bool {
	x, y := *a, *b
	for _, j := range []*drover.Job{&x, &y} {
		j.Status, j.StatusDescription, j.Stable, j.Version, j.SubmitTime = "", "", false, 0, 0
		j.CreateIndex, j.ModifyIndex, j.JobModifyIndex, j.VersionTag = 0, 0, 0, nil
		j.NomadTokenID = ""
	}
	return reflect.DeepEqual(&x, &y)
}

// pruneOwn prunes after a version that nobody registered. If it is not known how many are kept, 0, newer servers leave that to the next
// registration; older ones keep TrackedJobVersions whatever is said.
func (e *entry) pruneOwn(j *drover.Job, keep int) {
	switch {
	case cluster.VersionOf(e.txn.Cluster()) < prunesAtRegistrations:
		e.pruneVersions(j, 0)
	case keep > 0:
		e.pruneVersions(j, keep)
	}
}

// prunesAtRegistrations is the cluster version from which only commands prune that say how many versions are kept.
const prunesAtRegistrations = 3

// pruneVersions keeps so many versions, 0 is TrackedJobVersions, and beside them tagged ones and the newest stable one.
func (e *entry) pruneVersions(j *drover.Job, keep int) {
	optional.Default(&keep, drover.TrackedJobVersions)
	versions := e.txn.JobVersions(j.Namespace, j.ID)
	kept, stableSeen := 0, false
	for _, v := range versions {
		newestStable := v.Stable && !stableSeen
		stableSeen = stableSeen || v.Stable
		switch {
		case v.VersionTag != nil:
		case kept < keep:
			kept++
		case newestStable:
		default:
			e.txn.DeleteJobVersion(v)
		}
	}
}

// deregisterJob stops a job, or forgets it with Purge. A stop is a version of its own, so that it can be reverted.
// Stopping a stopped job only stores the evaluation, with the index of the first stop. Errors: NotFound.
func (e *entry) deregisterJob(c *command.DeregisterJob) error {
	old := e.txn.Job(c.Namespace, c.ID)
	if old == nil {
		return drover.Errorf(drover.NotFound, "job not found")
	}
	if c.NoShutdownDelay {
		e.skipShutdownDelay(c)
	}
	jobIndex := e.index
	switch {
	case c.Purge:
		e.countChild(old, old, nil)
		e.deleteJob(old)
	case old.Stop:
		jobIndex = old.JobModifyIndex
	default:
		j := *old
		j.Stop, j.Version, j.VersionTag = true, old.Version+1, nil // as stable as what it stops
		j.ModifyIndex, j.JobModifyIndex, j.SubmitTime = e.index, e.index, c.Time
		e.putJob(&j)
		e.keepSource(old, &j)
		e.pruneOwn(&j, c.Versions)
	}
	if c.Eval != nil {
		ev := *c.Eval
		ev.JobModifyIndex = jobIndex
		e.putEval(ev)
	}
	return nil
}

// skipShutdownDelay tells the nodes to stop the job's allocations without their shutdown delay. The allocations are
// collected first, because the table must not change during the iteration.
func (e *entry) skipShutdownDelay(c *command.DeregisterJob) {
	var live []*drover.Allocation
	for a := range e.txn.AllocationsByJob(c.Namespace, c.ID) {
		if !a.ClientTerminal() {
			live = append(live, a)
		}
	}
	for _, a := range live {
		e.transition(a, drover.DesiredTransition{NoShutdownDelay: new(true)}, c.Time)
	}
}

// setJobStability marks one version as stable or not, which decides where an automatic revert goes. Errors: NotFound.
func (e *entry) setJobStability(c *command.SetJobStability) error {
	v := e.txn.JobVersion(c.Namespace, c.ID, c.Version)
	if v == nil {
		return drover.Errorf(drover.NotFound, "job %q at version %d not found", c.ID, c.Version)
	}
	if v.Stable != c.Stable {
		next := *v
		next.Stable, next.ModifyIndex = c.Stable, e.index
		e.putVersion(&next)
	}
	return nil
}

// tagJobVersion names a version so that it is not pruned, or removes the name if the command has no tag. A name belongs
// to one version of a job at most. Errors: NotFound, Conflict if another version has the name.
func (e *entry) tagJobVersion(c *command.TagJobVersion) error {
	var target *drover.Job
	for _, v := range e.txn.JobVersions(c.Namespace, c.ID) {
		named := v.VersionTag != nil && v.VersionTag.Name == c.Name
		switch {
		case c.Tag == nil && named:
			target = v
		case c.Tag != nil && v.Version == c.Version:
			target = v
		case c.Tag != nil && named:
			return drover.Errorf(drover.Conflict, "tag %q already exists on a different version of job %q", c.Name, c.ID)
		}
	}
	if target == nil {
		return drover.Errorf(drover.NotFound, "job %q has no such version", c.ID)
	}
	next := *target
	next.VersionTag, next.ModifyIndex = c.Tag, e.index
	e.putVersion(&next)
	return nil
}

// putVersion stores a changed version, which may be the current one.
func (e *entry) putVersion(v *drover.Job) {
	if now := e.txn.Job(v.Namespace, v.ID); now != nil && now.Version == v.Version {
		e.putJob(v)
		return
	}
	e.txn.PutJobVersion(v)
}
