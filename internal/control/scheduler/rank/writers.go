package rank

import (
	"fmt"

	"github.com/drover-project/drover"
)

// writers is who writes the host volumes of a node. An allocation that is being stopped does until its node says that it ended.
type writers struct{ list []writer }

// writer is an allocation that writes a volume. That of an allocation of this plan has no id.
type writer struct {
	drover.VolumeWrite

	allocID   string
	namespace string
	jobID     string
}

func (w *writers) add(allocID string, j *drover.Job, writes []drover.VolumeWrite) {
	for _, one := range writes {
		w.list = append(w.list, writer{one, allocID, j.Namespace, j.ID})
	}
}

// writersOn reads who writes volumes of the node, once for a candidate.
func (b *Board) writersOn(c *candidate) *writers {
	if c.writers == nil {
		c.writers = &writers{}
		for a := range unfinishedOn(b.Snapshot, c.node.ID) {
			if a.Job != nil && !a.ClientTerminal() {
				c.writers.add(a.ID, a.Job, a.VolumeWrites())
			}
		}
	}
	return c.writers
}

// contended says which volume an allocation of the group cannot write on the node because another one does, the one with the id left aside,
// and one of the two may only write alone; "" if there is none. Volumes of the node's configuration take all writers.
func (b *Board) contended(c *candidate, aside string) string {
	for _, w := range b.writes {
		if have := c.node.HostVolumes[w.Name]; have == nil || have.ID == "" {
			continue
		}
		for _, x := range b.writersOn(c).list {
			if x.namespace == b.Job.Namespace && w.Contends(x.VolumeWrite) && (aside == "" || x.allocID != aside) {
				return fmt.Sprintf("host volume %s (job %q writes it; %s)", w.Name, x.jobID, drover.AccessSingleWriter)
			}
		}
	}
	return ""
}
