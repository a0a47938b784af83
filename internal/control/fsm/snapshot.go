package fsm

import (
	"bufio"
	"crypto/sha256"
	"io"
	"iter"

	"drover"
	"drover/internal/control/store"
)

// Image is the state at one index, to be written while newer entries are applied.
type Image struct{ s *store.Snapshot }

// Image returns the present state. It is cheap.
func (f *FSM) Image() *Image { return &Image{f.store.Snapshot()} }

// Index returns the index of the image's last entry.
func (i *Image) Index() uint64 { return i.s.Index() }

// Snapshot writes the present state.
func (f *FSM) Snapshot(w io.Writer) error { return f.Image().Write(w) }

// Hash returns a digest of the whole state. The same log gives the same hash, with or without a restore in between.
func (f *FSM) Hash() [32]byte {
	h := sha256.New()
	if err := f.Snapshot(h); err != nil {
		panic(err) // a hash takes every write, and what was decoded can be encoded
	}
	return [32]byte(h.Sum(nil))
}

// Write writes the state as a stream of records. The same state gives the same bytes.
func (i *Image) Write(w io.Writer) error {
	buf := bufio.NewWriterSize(w, 64<<10)
	if _, err := buf.WriteString(snapshotMagic + string(rune(snapshotVersion))); err != nil {
		return err
	}
	x := &imageWriter{
		recordWriter: recordWriter{w: buf}, s: i.s, known: map[jobRef]bool{},
		resources: map[*drover.AllocatedResources]int{}, metrics: map[*drover.AllocationMetric]int{},
	}
	for _, step := range []func() error{x.meta, x.cluster, x.jobs, x.evals, x.allocs, x.fleet} {
		if err := step(); err != nil {
			return err
		}
	}
	if err := x.write(recEnd, endRecord{x.count}); err != nil {
		return err
	}
	return buf.Flush()
}

type imageWriter struct {
	recordWriter
	s         *store.Snapshot
	known     map[jobRef]bool // jobs that were written
	resources map[*drover.AllocatedResources]int
	metrics   map[*drover.AllocationMetric]int
}

func writeAll[T any](x *imageWriter, kind recordKind, seq iter.Seq[*T]) error {
	for v := range seq {
		if err := x.write(kind, v); err != nil {
			return err
		}
	}
	return nil
}

func (x *imageWriter) meta() error {
	return x.write(recMeta, metaRecord{x.s.Index(), x.s.TableIndexes()})
}

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
	return writeAll(x, recNode, x.s.Nodes(""))
}

func (x *imageWriter) jobs() error {
	for j := range x.s.AllJobVersions() {
		x.known[refOf(j)] = true
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
	return writeAll(x, recJobRow, x.s.JobRows())
}

func (x *imageWriter) evals() error {
	if err := writeAll(x, recEval, x.s.Evaluations("*", "")); err != nil {
		return err
	}
	return writeAll(x, recDeployment, x.s.Deployments("*", ""))
}

func (x *imageWriter) allocs() error {
	for a := range x.s.Allocations("*", "") {
		if err := x.alloc(a); err != nil {
			return err
		}
	}
	return nil
}

func (x *imageWriter) alloc(a *drover.Allocation) error {
	bare := *a
	bare.Job, bare.AllocatedResources, bare.Metrics = nil, nil, nil
	rec := allocRecord{Alloc: &bare}
	if a.Job != nil {
		rec.Job = refOf(a.Job)
		if !x.known[rec.Job] {
			x.known[rec.Job] = true
			if err := x.write(recOldJob, oldJob(a.Job)); err != nil {
				return err
			}
		}
	}
	var err error
	if rec.Resources, err = shared(x, recResources, x.resources, a.AllocatedResources); err != nil {
		return err
	}
	if rec.Metrics, err = shared(x, recMetrics, x.metrics, a.Metrics); err != nil {
		return err
	}
	return x.write(recAlloc, rec)
}

// oldJob is a version that only allocations remember. They may hold copies of several moments, so what the server
// said of the job then is left out.
func oldJob(j *drover.Job) *drover.Job {
	c := *j
	c.Status, c.StatusDescription, c.Stable, c.VersionTag = drover.JobStatusDead, "", false, nil
	c.ModifyIndex = c.JobModifyIndex
	c.TaskGroups = withoutDemand(c.TaskGroups)
	return &c
}

// shared returns the number + 1 of what v points to, and writes it at its first use.
func shared[T any](x *imageWriter, kind recordKind, seen map[*T]int, v *T) (int, error) {
	if v == nil {
		return 0, nil
	}
	if n := seen[v]; n > 0 {
		return n, nil
	}
	seen[v] = len(seen) + 1
	return seen[v], x.write(kind, v)
}
