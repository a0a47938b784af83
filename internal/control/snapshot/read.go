package snapshot

import (
	"bufio"
	"encoding/binary"
	"io"
	"math"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
)

// Read begins a restore of the store and reads a snapshot into it. The caller commits it, and may change the state before; after an
// error nothing has changed. at returns the index of the new state for that of the snapshot; nil = it is the same.
// Errors: Invalid with what is wrong with the snapshot and where, and those of r.
func Read(r io.Reader, into *store.Store, at func(saved uint64) uint64) (*store.Txn, error) {
	x := &imageReader{
		recordReader: recordReader{r: bufio.NewReaderSize(r, 64<<10)}, jobs: map[jobRef]*drover.Job{},
		strings: command.NewInterner(),
	}
	if err := x.header(); err != nil {
		return nil, err
	}
	meta, err := x.meta()
	if err != nil {
		return nil, err
	}
	index := meta.Index
	if at != nil {
		index = at(index)
	}
	x.t = into.BeginRestore(index)
	if err := x.all(); err != nil {
		x.t.Abort()
		return nil, err
	}
	x.t.RestoreTables(meta.Tables)
	return x.t, nil
}

// imageReader rebuilds the sharing of the written state: allocations point to the same job, resources and metrics
// again. The slices are indexed by the number of the record among those of its kind.
type imageReader struct {
	recordReader
	t         *store.Txn
	jobs      map[jobRef]*drover.Job
	resources []*drover.AllocatedResources
	metrics   []*drover.AllocationMetric
	numbered  []*drover.Job // those in jobs, in the order of their records
	strings   *command.Interner
}

// header checks magic and version. Errors: Invalid if it is another file, or of a version that this program cannot
// read.
func (x *imageReader) header() error {
	head := make([]byte, len(snapshotMagic)+1)
	if _, err := io.ReadFull(x.r, head); err != nil {
		return x.torn(err)
	}
	if string(head[:len(snapshotMagic)]) != snapshotMagic {
		return drover.Errorf(drover.Invalid, "this is not a snapshot of drover")
	}
	if v := head[len(snapshotMagic)]; v < command.Oldest || v > command.Newest {
		return drover.Errorf(drover.Invalid, "snapshot version %d, this program reads %d to %d", v, command.Oldest, command.Newest)
	}
	return nil
}

// meta reads the first record. It has to be the first because the restoring transaction begins at its index.
func (x *imageReader) meta() (m metaRecord, err error) {
	kind, payload, err := x.next()
	if err != nil {
		return m, err
	}
	if kind != recMeta {
		return m, drover.Errorf(drover.Invalid, "corrupt snapshot: it begins with record kind %d", kind)
	}
	return m, command.Unmarshal(payload, &m)
}

// all reads records up to the end mark. What stands behind the mark is not read.
func (x *imageReader) all() error {
	for {
		n := x.count
		kind, payload, err := x.next()
		if err != nil {
			return err
		}
		if kind == recEnd {
			return x.end(n, payload)
		}
		if err := x.record(kind, payload); err != nil {
			return drover.Errorf(drover.Invalid, "corrupt snapshot: record %d of kind %d: %w", n, kind, err)
		}
	}
}

// end compares the count of the end mark with the records read.
func (x *imageReader) end(records uint64, payload []byte) error {
	var end endRecord
	if err := command.Unmarshal(payload, &end); err != nil {
		return drover.Errorf(drover.Invalid, "corrupt snapshot: its end mark: %w", err)
	}
	if end.Records != records {
		return drover.Errorf(drover.Invalid, "corrupt snapshot: %d records, its end mark says %d", records, end.Records)
	}
	return nil
}

// read decodes a payload into a new T and hands it on. Each call makes its own T, because the store keeps it.
func read[T any](payload []byte, then func(*T)) error {
	v := new(T)
	if err := command.Unmarshal(payload, v); err != nil {
		return err
	}
	then(v)
	return nil
}

// record restores one record. Records refer only to earlier ones, so a single pass is enough.
func (x *imageReader) record(kind recordKind, payload []byte) error {
	switch kind {
	case recNamespace:
		return read(payload, x.t.RestoreNamespace)
	case recNodePool:
		return read(payload, x.t.RestoreNodePool)
	case recSchedulerConfig:
		return read(payload, x.t.RestoreSchedulerConfig)
	case recCluster, recLessee, recAutopilot:
		return x.several(kind, payload)
	case recNode:
		return read(payload, x.t.RestoreNode)
	case recJobVersion:
		return read(payload, func(j *drover.Job) {
			x.know(j)
			x.t.RestoreJobVersion(j)
		})
	case recOldJob:
		return read(payload, x.know)
	case recJob:
		return x.job(payload)
	case recJobRow:
		return read(payload, x.t.RestoreJobRow)
	case recScaling:
		return read(payload, x.t.RestoreScalingEvents)
	case recJobSubmission:
		return read(payload, x.t.RestoreJobSubmission)
	case recEval:
		return read(payload, x.t.RestoreEvaluation)
	case recExecution:
		return read(payload, x.t.RestoreExecution)
	case recDeployment:
		return read(payload, x.t.RestoreDeployment)
	case recResources:
		return read(payload, func(r *drover.AllocatedResources) { x.resources = append(x.resources, r) })
	case recMetrics:
		return read(payload, func(m *drover.AllocationMetric) { x.metrics = append(x.metrics, m) })
	case recPlaced:
		return x.placed(payload)
	case recAlloc:
		return x.alloc(payload)
	default:
		return x.fleet(kind, payload)
	}
}

// several restores a record of what several servers are together.
func (x *imageReader) several(kind recordKind, payload []byte) error {
	switch kind {
	case recCluster:
		return read(payload, x.t.RestoreCluster)
	case recLessee:
		return read(payload, x.t.RestoreLessee)
	default:
		return read(payload, x.t.RestoreAutopilot)
	}
}

// job restores which version is a job's current one. The version itself was an earlier record.
func (x *imageReader) job(payload []byte) error {
	var ref jobRef
	if err := command.Unmarshal(payload, &ref); err != nil {
		return err
	}
	j := x.jobs[ref]
	if j == nil {
		return drover.Errorf(drover.Invalid, "job %q has no version %d", ref.ID, ref.Version)
	}
	x.t.RestoreJob(j)
	return nil
}

// know makes a job's version available to the allocations that follow, by reference and by number.
func (x *imageReader) know(j *drover.Job) {
	x.jobs[refOf(j)] = j
	x.numbered = append(x.numbered, j)
}

// placed reads three numbers (job, resources, metrics) and the allocation behind them. Errors: Invalid for a number
// that no record has, and those of decoding.
func (x *imageReader) placed(payload []byte) error {
	var numbers [3]int
	for i := range numbers {
		n, k := binary.Uvarint(payload)
		if k <= 0 || n > math.MaxInt32 {
			return errPointsNowhere
		}
		numbers[i], payload = int(n), payload[k:]
	}
	a, err := command.DecodeAllocation(payload, x.strings)
	if err != nil {
		return err
	}
	if numbers[0] > len(x.numbered) {
		return drover.Errorf(drover.Invalid, "allocation %s has no job", a.ID)
	}
	if numbers[0] > 0 {
		a.Job = x.numbered[numbers[0]-1]
	}
	return x.place(a, numbers[1], numbers[2])
}

// errPointsNowhere is the error of an allocation without a body, or with a number beyond the records read so far.
var errPointsNowhere = drover.Errorf(drover.Invalid, "an allocation that points nowhere")

// alloc reads what older snapshots have instead of recPlaced.
func (x *imageReader) alloc(payload []byte) error {
	var rec allocRecord
	if err := command.Unmarshal(payload, &rec); err != nil {
		return err
	}
	if rec.Alloc == nil {
		return errPointsNowhere
	}
	if rec.Job != (jobRef{}) {
		if rec.Alloc.Job = x.jobs[rec.Job]; rec.Alloc.Job == nil {
			return drover.Errorf(drover.Invalid, "allocation %s has no job", rec.Alloc.ID)
		}
	}
	return x.place(rec.Alloc, rec.Resources, rec.Metrics)
}

// place stores the allocation with what it shares; the references are numbers + 1.
func (x *imageReader) place(a *drover.Allocation, resources, metrics int) error {
	if resources < 0 || resources > len(x.resources) || metrics < 0 || metrics > len(x.metrics) {
		return errPointsNowhere
	}
	if resources > 0 {
		a.AllocatedResources = x.resources[resources-1]
	}
	if metrics > 0 {
		a.Metrics = x.metrics[metrics-1]
	}
	x.t.RestoreAllocation(a)
	return nil
}
