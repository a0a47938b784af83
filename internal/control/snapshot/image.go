package snapshot

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"iter"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/leases"
	"github.com/drover-project/drover/internal/control/store"
)

// Image is the state at one index, to be written while newer entries are applied.
type Image struct{ s *store.Snapshot }

// Of returns what is to be written of the state. It is cheap.
func Of(s *store.Snapshot) *Image { return &Image{s} }

// Index returns the index of the image's last entry.
func (i *Image) Index() uint64 { return i.s.Index() }

// Hash returns a digest of the whole state. The same log gives the same hash, with or without a restore in between.
func (i *Image) Hash() [32]byte {
	h := sha256.New()
	if err := i.Write(h); err != nil {
		panic(err) // a hash takes every write, and what was decoded can be encoded
	}
	return [32]byte(h.Sum(nil))
}

// Write writes the state as a stream of records, in the format of the cluster's version: all servers read it. The same state
// gives the same bytes.
func (i *Image) Write(w io.Writer) error {
	buf := bufio.NewWriterSize(w, 64<<10)
	if _, err := buf.WriteString(snapshotMagic + string(rune(cluster.VersionOf(i.s.Cluster())))); err != nil {
		return err
	}
	x := &imageWriter{
		recordWriter: recordWriter{w: buf}, s: i.s, known: map[jobRef]int{}, numbers: map[*drover.Job]int{},
		resources: newSharing[drover.AllocatedResources](), metrics: newSharing[drover.AllocationMetric](),
	}
	for _, step := range []func() error{x.meta, x.cluster, x.jobs, x.evals, x.allocs, x.fleet, x.acl, x.secrets} {
		if err := step(); err != nil {
			return err
		}
	}
	if err := x.write(recEnd, endRecord{x.count}); err != nil {
		return err
	}
	return buf.Flush()
}

// imageWriter writes a snapshot of the store. Its tables are read in the order of their keys, so the same state gives
// the same bytes.
type imageWriter struct {
	recordWriter
	s         *store.Snapshot
	known     map[jobRef]int      // jobs that were written, and their number + 1
	numbers   map[*drover.Job]int // the same by pointer
	resources sharing[drover.AllocatedResources]
	metrics   sharing[drover.AllocationMetric]
}

// writeAll writes a record for each row of a table.
func writeAll[T any](x *imageWriter, kind recordKind, seq iter.Seq[*T]) error {
	for v := range seq {
		if err := x.write(kind, v); err != nil {
			return err
		}
	}
	return nil
}

// meta writes the indexes; the reader needs them before all else.
func (x *imageWriter) meta() error {
	return x.write(recMeta, metaRecord{x.s.Index(), x.s.TableIndexes()})
}

// cluster writes the tables that nothing else in the stream is needed for: namespaces, pools, configuration and nodes.
// A cluster that was never initialized has no record.
func (x *imageWriter) cluster() error {
	if err := writeAll(x, recNamespace, x.s.Namespaces()); err != nil {
		return err
	}
	if err := writeAll(x, recNodePool, x.s.NodePools()); err != nil {
		return err
	}
	if err := x.write(recSchedulerConfig, x.s.SchedulerConfig()); err != nil {
		return err
	}
	if c := x.s.Cluster(); c != nil {
		if err := x.write(recCluster, c); err != nil {
			return err
		}
	}
	if err := writeAll(x, recLessee, x.s.Lessees()); err != nil {
		return err
	}
	if a := x.s.Autopilot(); a != nil {
		if err := x.write(recAutopilot, a); err != nil {
			return err
		}
	}
	return writeAll(x, recNode, x.s.Nodes(""))
}

// jobs writes all versions first, then as references which of them are current. Each version is numbered in this order;
// the reader counts in the same way.
func (x *imageWriter) jobs() error {
	for j := range x.s.AllJobVersions() {
		x.known[refOf(j)] = len(x.known) + 1
		if err := x.write(recJobVersion, j); err != nil {
			return err
		}
	}
	for j := range x.s.Jobs("*", "") {
		if err := x.write(recJob, refOf(j)); err != nil {
			return err
		}
	}
	if err := writeAll(x, recScaling, x.s.AllScalingEvents()); err != nil {
		return err
	}
	if err := writeAll(x, recJobSubmission, x.s.AllJobSubmissions()); err != nil {
		return err
	}
	return writeAll(x, recJobRow, x.s.JobRows())
}

// evals writes the evaluations, what is kept of executions, and the deployments.
func (x *imageWriter) evals() error {
	if err := writeAll(x, recEval, x.s.Evaluations("*", "")); err != nil {
		return err
	}
	if err := writeAll(x, recExecution, x.s.Executions()); err != nil {
		return err
	}
	return writeAll(x, recDeployment, x.s.Deployments("*", ""))
}

// allocs writes every allocation, each behind the shared values that it is the first to use.
func (x *imageWriter) allocs() error {
	for a := range x.s.Allocations("*", "") {
		if err := x.alloc(a); err != nil {
			return err
		}
	}
	return nil
}

// alloc writes one allocation as recPlaced. The scratch buffer is taken after the shared records, which use it as well.
func (x *imageWriter) alloc(a *drover.Allocation) error {
	job, err := x.number(a.Job)
	if err != nil {
		return err
	}
	resources, err := shared(x, recResources, &x.resources, a.AllocatedResources)
	if err != nil {
		return err
	}
	metrics, err := shared(x, recMetrics, &x.metrics, a.Metrics)
	if err != nil {
		return err
	}
	payload := x.scratch[:0]
	for _, n := range []int{job, resources, metrics} {
		payload = binary.AppendUvarint(payload, uint64(n))
	}
	if payload, err = command.AppendAllocation(payload, a); err != nil {
		return err
	}
	x.scratch = payload
	return x.put(recPlaced, payload)
}

// number returns the number + 1 of the job's version, and writes it if only allocations remember it.
func (x *imageWriter) number(j *drover.Job) (int, error) {
	if j == nil {
		return 0, nil
	}
	if n := x.numbers[j]; n > 0 {
		return n, nil
	}
	ref := refOf(j)
	if x.known[ref] == 0 {
		x.known[ref] = len(x.known) + 1
		if err := x.write(recOldJob, oldJob(j)); err != nil {
			return 0, err
		}
	}
	x.numbers[j] = x.known[ref]
	return x.known[ref], nil
}

// oldJob is a version that only allocations remember. They may hold copies of several moments, so what the server
// said of the job then is left out.
func oldJob(j *drover.Job) *drover.Job {
	c := *j
	c.Status, c.StatusDescription, c.Stable, c.VersionTag = drover.JobStatusDead, "", false, nil
	c.ModifyIndex = c.JobModifyIndex
	if groups, changed := leases.WithDemand(c.TaskGroups, 0); changed {
		c.TaskGroups = groups // nothing starts runners of it any more
	}
	return &c
}

// sharing numbers what several allocations point to, or have equal copies of.
type sharing[T any] struct {
	seen  map[*T]int
	same  map[string]int // by their records
	count int
}

// newSharing returns an empty numbering.
func newSharing[T any]() sharing[T] { return sharing[T]{seen: map[*T]int{}, same: map[string]int{}} }

// maxSame is how many different records are compared with those behind them.
const maxSame = 1 << 16

// shared returns the number + 1 of what v points to, and writes it at its first use.
func shared[T any](x *imageWriter, kind recordKind, s *sharing[T], v *T) (int, error) {
	if v == nil {
		return 0, nil
	}
	if n := s.seen[v]; n > 0 {
		return n, nil
	}
	payload, err := x.marshal(kind, v)
	if err != nil {
		return 0, err
	}
	n := s.same[string(payload)]
	if n == 0 {
		s.count++
		n = s.count
		// Beyond the bound equal values are written again, which costs space but not memory.
		if len(s.same) < maxSame {
			s.same[string(payload)] = n
		}
		err = x.put(kind, payload)
	}
	s.seen[v] = n
	return n, err
}
