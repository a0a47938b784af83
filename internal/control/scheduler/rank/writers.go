package rank

import (
	"fmt"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/volume"
)

// writers is who writes the host volumes of a node. An allocation that is being stopped does until its node says that it ended.
// One that has claimed its volume does while its job wants it, also when it is away for a moment.
type writers struct{ list []writer }

// writer is an allocation that writes a volume. That of an allocation of this plan has no id.
type writer struct {
	drover.VolumeWrite

	allocID string
	job     drover.NamespacedID
	claim   *volume.HostVolumeClaim // by which it has the volume, whether it runs or not; nil: it runs, or did until a moment ago
}

func (w *writers) add(allocID string, j *drover.Job, writes []drover.VolumeWrite) {
	for _, one := range writes {
		w.list = append(w.list, writer{one, allocID, j.Key(), nil})
	}
}

// writersOn reads who writes volumes of the node, once for a candidate.
func (b *Board) writersOn(c *candidate) *writers {
	if c.writers != nil {
		return c.writers
	}
	c.writers = &writers{}
	for a := range unfinishedOn(b.Snapshot, c.node.ID) {
		if a.Job != nil && !a.ClientTerminal() {
			c.writers.add(a.ID, a.Job, a.VolumeWrites())
		}
	}
	for _, have := range c.node.HostVolumes {
		if have == nil || have.ID == "" {
			continue
		}
		for claim := range b.Snapshot.VolumeClaimsOn(have.ID) {
			if w, wanted := b.wants(claim); wanted {
				j := drover.NamespacedID{Namespace: claim.Namespace, ID: claim.JobID}
				c.writers.list = append(c.writers.list, writer{w, claim.AllocID, j, claim})
			}
		}
	}
	return c.writers
}

// wants says how the allocation of a claim writes the volume; false if its job does not want that now: it is stopped, has fewer
// allocations or other volumes.
func (b *Board) wants(claim *volume.HostVolumeClaim) (drover.VolumeWrite, bool) {
	j := b.Snapshot.Job(claim.Namespace, claim.JobID)
	if j == nil || j.Stopped() {
		return drover.VolumeWrite{}, false
	}
	g, index := j.Group(claim.TaskGroupName), (&drover.Allocation{Name: claim.AllocName}).Index()
	if g == nil || !g.OwnVolumes() || index >= g.DesiredCount() {
		return drover.VolumeWrite{}, false
	}
	for _, w := range g.VolumeWrites(index) {
		if w.Name == claim.VolumeName {
			return w, true
		}
	}
	return drover.VolumeWrite{}, false
}

// own reports whether the claim is of the allocation that is to be placed.
func (b *Board) own(c *volume.HostVolumeClaim) bool {
	return c != nil && c.AllocName == b.Volumes.Name && c.TaskGroupName == b.Group.Name && c.JobID == b.Job.ID &&
		c.Namespace == b.Job.Namespace
}

// contended says which volume an allocation of the group cannot write on the node because another one does, and one of the two
// may only write alone. The allocation with the id is left aside; "" if there is none. Volumes of the node's configuration take
// all writers.
func (b *Board) contended(c *candidate, aside string) string {
	for _, w := range b.writes {
		if have := c.node.HostVolumes[w.Name]; have == nil || have.ID == "" {
			continue
		}
		list := b.writersOn(c).list
		mine := slices.ContainsFunc(list, func(x writer) bool { return x.Name == w.Name && b.own(x.claim) })
		for _, x := range list {
			if mine && x.claim != nil { // who shared it before has claimed it, too: none of them waits for another that does not run
				continue
			}
			if x.job.Namespace != b.Job.Namespace || !w.Contends(x.VolumeWrite) || aside != "" && x.allocID == aside {
				continue
			}
			how := fmt.Sprintf("job %q writes it", x.job.ID)
			if x.claim != nil {
				how = fmt.Sprintf("it is that of %s by claim %s", x.claim.AllocName, x.claim.ID)
			}
			return fmt.Sprintf("host volume %s (%s; %s)", w.Name, how, drover.AccessSingleWriter)
		}
	}
	return ""
}
