package snapshot

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
)

// The snapshot is a stream of records behind magic and a byte with the cluster's version, which is that of its format:
//
//	kind (1 byte) | length (uvarint) | payload (msgpack) | CRC-32C of kind and payload (4 bytes)
//
// The last record counts those before it. What is shared in memory (resources, metrics, purged jobs) comes once, in
// front of the first allocation that points to it, and gets the next number of its kind.
const (
	snapshotMagic = "DROVERSNAP"
	maxRecord     = command.MaxSize
)

// recordKind says what a record's payload is. It is stored as one byte.
type recordKind uint8

// The kinds of records; append only.
const (
	_ recordKind = iota
	recMeta
	recNamespace
	recNodePool
	recSchedulerConfig
	recJobVersion
	recJob
	recJobRow
	recNode
	recEval
	recDeployment
	recResources
	recMetrics
	recOldJob
	recAlloc
	recEnd
	recScaling
	recFleetIdentity
	recFleetPool
	recFleetInstance
	recFleetCost
	recPlaced
	recJobSubmission
	recFleetMemory
	recCluster
	recExecution
	recLessee
	recAutopilot
	recACLBootstrap
	recACLPolicy
	recACLRole
	recACLToken
	recOneTimeToken
	recRootKey
	recAuthMethod
	recBindingRule
	recVariable
	recQuota
	recExecutionSlot
	recSpent
	recAdmissionRule
	recHostVolume
	recVolumeClaim
	recRevocation
)

// metaRecord is the first record: the index of the last applied entry, and for each table that of its last change. The
// latter answer blocking queries after a restore.
type metaRecord struct {
	Index  uint64
	Tables map[string]uint64
}

// jobRef names a job's version.
type jobRef struct {
	Namespace   string
	ID          string
	Version     uint64
	CreateIndex uint64
}

// refOf includes CreateIndex because a purged job can be registered again and then repeats its version numbers.
func refOf(j *drover.Job) jobRef { return jobRef{j.Namespace, j.ID, j.Version, j.CreateIndex} }

// allocRecord is an allocation without what it shares. The references are numbers + 1; 0 = none. Snapshots had it
// until there was recPlaced, which is the numbers + 1 of the job, the resources and the metrics (uvarint each), then
// the allocation as command.AppendAllocation writes it.
type allocRecord struct {
	Alloc     *drover.Allocation
	Job       jobRef
	Resources int
	Metrics   int
}

// endRecord ends the stream with the number of records before it. A stream without it was cut off.
type endRecord struct{ Records uint64 }

// castagnoli is the CRC-32 polynomial that processors compute with an instruction of their own.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// recordWriter writes records and counts them. The scratch buffer is used again for each payload, since a snapshot has
// one record for each allocation.
type recordWriter struct {
	w       io.Writer
	scratch []byte
	count   uint64
}

// write encodes v with msgpack and puts it as one record. Errors: Internal if v cannot be encoded, and those of the
// writer.
func (w *recordWriter) write(kind recordKind, v any) error {
	payload, err := w.marshal(kind, v)
	if err != nil {
		return err
	}
	return w.put(kind, payload)
}

// marshal encodes v; the result is valid until the next call.
func (w *recordWriter) marshal(kind recordKind, v any) ([]byte, error) {
	payload, err := command.Marshal(w.scratch[:0], v)
	if err != nil {
		return nil, drover.Errorf(drover.Internal, "encoding snapshot record %d: %w", kind, err)
	}
	w.scratch = payload
	return payload, nil
}

// put writes one record around an encoded payload: head, payload and checksum. Its errors are the writer's.
func (w *recordWriter) put(kind recordKind, payload []byte) error {
	var head [1 + binary.MaxVarintLen64]byte
	head[0] = byte(kind)
	n := 1 + binary.PutUvarint(head[1:], uint64(len(payload)))
	if _, err := w.w.Write(head[:n]); err != nil {
		return err
	}
	if _, err := w.w.Write(payload); err != nil {
		return err
	}
	var sum [4]byte
	binary.LittleEndian.PutUint32(sum[:], checksum(kind, payload))
	w.count++
	_, err := w.w.Write(sum[:])
	return err
}

// checksum covers the kind as well, so that a damaged kind byte cannot pass one record off as another.
func checksum(kind recordKind, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte{byte(kind)}, castagnoli), castagnoli, payload)
}

// recordReader reads records and checks their checksums. count is the number of the next record, which errors name.
type recordReader struct {
	r       *bufio.Reader
	scratch []byte
	count   uint64
}

// next returns the next record; the payload is valid until the next call.
func (r *recordReader) next() (recordKind, []byte, error) {
	k, err := r.r.ReadByte()
	if err != nil {
		return 0, nil, r.torn(err)
	}
	n, err := r.length()
	if err != nil {
		return 0, nil, err
	}
	// The length is checked before memory is taken for it, because a damaged one may be any number.
	if n > maxRecord {
		return 0, nil, drover.Errorf(drover.Invalid, "corrupt snapshot: record %d claims %d bytes", r.count, n)
	}
	if uint64(cap(r.scratch)) < n+4 {
		r.scratch = make([]byte, n+4)
	}
	buf := r.scratch[:n+4]
	if _, err := io.ReadFull(r.r, buf); err != nil {
		return 0, nil, r.torn(err)
	}
	payload := buf[:n]
	if binary.LittleEndian.Uint32(buf[n:]) != checksum(recordKind(k), payload) {
		return 0, nil, drover.Errorf(drover.Invalid, "corrupt snapshot: record %d has a wrong checksum", r.count)
	}
	r.count++
	return recordKind(k), payload, nil
}

// length reads a record's length. It reads no byte behind it: the sender may wait for an answer there.
func (r *recordReader) length() (uint64, error) {
	var b [binary.MaxVarintLen64]byte
	for i := range b {
		c, err := r.r.ReadByte()
		if err != nil {
			return 0, r.torn(err)
		}
		if b[i] = c; c >= 0x80 {
			continue
		}
		if n, size := binary.Uvarint(b[:i+1]); size > 0 {
			return n, nil
		}
		break
	}
	return 0, drover.Errorf(drover.Invalid, "corrupt snapshot: record %d has no length", r.count)
}

// torn turns the end of the input into an Invalid error that says where it happened. Other errors are returned as they
// are.
func (r *recordReader) torn(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return drover.Errorf(drover.Invalid, "torn snapshot: it ends within or behind record %d, without its end mark", r.count)
	}
	return err
}
