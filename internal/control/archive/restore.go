package archive

import (
	"context"
	"fmt"
	"hash"
	"io"
	"os"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/control/trigger"
)

// partSize is how much of a snapshot goes into an entry of the log.
const partSize = 1 << 20

// holdFor bounds how long what leads may take to end.
const holdFor = 30 * time.Second

// Restore replaces the state of all servers by an archive's; only at the leader. said is what its sender says of its digest, "" is
// nothing. The archive is received and verified as a whole before anything changes. It then goes into the log in parts, which
// have no effect before the last: servers replace their state all at the same entry, or none does. The index is the new state's.
// Errors: Invalid with what is wrong of the archive; Conflict if another is being restored, or it is not for this cluster;
// Exhausted if the disk is full. Unavailable if it is encrypted and its key cannot be unwrapped; those of the log.
func (a *Archives) Restore(ctx context.Context, in io.Reader, said string) (uint64, error) {
	if !a.restoring.TryLock() {
		return 0, drover.Errorf(drover.Conflict, "another archive is being restored")
	}
	defer a.restoring.Unlock()
	f, err := a.receive(in, said)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	m, s, err := decode(ctx, f, a.deps.Keys)
	if err == nil {
		err = a.fits(m, s.Cluster())
	}
	if err != nil {
		return 0, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	out := &sender{Archives: a, ctx: ctx, next: command.RestoreState{
		ID: a.deps.IDs.New(), Epoch: cluster.EpochAt(a.deps.Clock.Now()), Then: a.then(s),
	}}
	if _, err := Read(f, out.send); err != nil {
		out.giveUp(ctx)
		return 0, fmt.Errorf("restoring the state: %w", err)
	}
	a.deps.Logger.Warn("the state was replaced by an archive's", "archive", m.ID, "saved", m.Created, "from", m.Index, "index", out.index)
	if err := a.deps.Log.Snapshot(); err != nil { // the log has the whole archive in it
		a.deps.Logger.Warn("shortening the log", "error", err)
	}
	return out.index, nil
}

// receive keeps what is sent in a file without a name.
func (a *Archives) receive(in io.Reader, said string) (*os.File, error) {
	return a.spool(func(w io.Writer, sum hash.Hash) error {
		if _, err := io.Copy(w, in); err != nil {
			return err
		}
		return CheckDigest(said, sum.Sum(nil))
	})
}

// fits reports why the archive is not for these servers.
func (a *Archives) fits(m cluster.Archive, restored *cluster.State) error {
	if m.Region != a.deps.Region {
		return drover.Errorf(drover.Conflict, "the archive is of region %q, this one is %q", m.Region, a.deps.Region)
	}
	if is, has := cluster.VersionOf(a.deps.Image().Cluster()), cluster.VersionOf(restored); has > is {
		return drover.Errorf(drover.Conflict, "the archive is of cluster version %d, this cluster has %d: upgrade all its servers first", has, is)
	}
	return nil
}

// Why an allocation is stopped by a restore.
const replaced = "the state was restored from an archive, which does not know what became of it"

// then is what has to be done to the restored state at once. Warm runners may have been handed out since: they end. So do services
// that were starting, as their nodes said meanwhile that they run, and don't say it again. Each job is looked at: nodes may have
// come and gone.
func (a *Archives) then(s *store.Snapshot) command.StopAllocs {
	m := trigger.Maker{IDs: a.deps.IDs, Now: a.deps.Clock.Now().UnixNano()}
	stop := command.StopAllocs{Description: replaced, Time: m.Now}
	for x := range s.Allocations("*", "") {
		if warm(x) || starting(x) {
			stop.IDs = append(stop.IDs, x.ID)
		}
	}
	for j := range s.Jobs("*", "") {
		if !j.Stopped() && j.Status != drover.JobStatusDead && !j.Periodical() && !j.Parameterized() {
			stop.Evals = append(stop.Evals, m.Job(j, drover.TriggerJobRegister))
		}
	}
	return stop
}

// warm reports whether the allocation could be handed out.
func warm(x *drover.Allocation) bool {
	if x.Terminal() || x.Claim != nil || x.Job == nil {
		return false
	}
	g := x.Job.Group(x.TaskGroup)
	return g != nil && g.Pool != nil
}

// starting reports whether the allocation is of a service, and was on its way.
func starting(x *drover.Allocation) bool {
	return !x.Terminal() && x.ClientStatus == drover.AllocClientPending && x.Job != nil &&
		(x.Job.Type == drover.JobTypeService || x.Job.Type == drover.JobTypeSystem)
}

// sender proposes a snapshot in parts. It keeps one back, as the last one says that it is.
type sender struct {
	*Archives
	ctx   context.Context // of the one call that it is made for
	next  command.RestoreState
	index uint64
}

// send implements the function of Read.
func (s *sender) send(m cluster.Archive, state io.Reader) error {
	state, err := plain(s.ctx, m, state, s.deps.Keys)
	if err != nil {
		return err
	}
	zip, err := gzip.NewWriterLevel(s, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if _, err := io.Copy(zip, state); err != nil {
		return err
	}
	if err := zip.Close(); err != nil {
		return err
	}
	return s.last()
}

// Write implements io.Writer.
func (s *sender) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		if len(s.next.Data) == partSize {
			part := command.RestoreState{ID: s.next.ID, Part: s.next.Part, Data: s.next.Data}
			if _, _, err := s.deps.Log.Propose(s.ctx, &part); err != nil {
				return 0, err
			}
			s.next.Part, s.next.Data = s.next.Part+1, nil
		}
		n := min(len(rest), partSize-len(s.next.Data))
		s.next.Data = append(s.next.Data, rest[:n]...)
		rest = rest[n:]
	}
	return len(p), nil
}

// last proposes the part that replaces the state. Meanwhile nothing here decides by the former one. From here on it does not end with
// who asked: they would not know what became of it.
func (s *sender) last() error {
	ctx, cancel := s.deps.Clock.WithTimeout(context.WithoutCancel(s.ctx), holdFor)
	defer cancel()
	release, err := s.deps.Log.Hold(ctx)
	if err != nil {
		return err
	}
	defer release()
	s.next.Last = true
	s.index, _, err = s.deps.Log.Propose(context.WithoutCancel(s.ctx), &s.next)
	return err
}

// giveUp has the servers drop the parts that they have: they write no snapshots meanwhile. If that fails, too, they do so in time.
func (s *sender) giveUp(ctx context.Context) {
	if s.next.Part == 0 {
		return
	}
	ctx, cancel := s.deps.Clock.WithTimeout(context.WithoutCancel(ctx), holdFor)
	defer cancel()
	if _, _, err := s.deps.Log.Propose(ctx, &command.Barrier{}); err != nil {
		s.deps.Logger.Warn("giving a restore up", "error", err)
	}
}
