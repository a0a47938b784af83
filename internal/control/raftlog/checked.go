package raftlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/hashicorp/raft"

	"github.com/drover-project/drover/internal/clock"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checkedLog puts a checksum beside each entry, since bbolt has none, and notes whether the disk takes writes.
type checkedLog struct {
	raft.LogStore
	health *health
	clock  clock.Clock
}

// StoreLog implements raft.LogStore.
func (c *checkedLog) StoreLog(l *raft.Log) error { return c.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore.
func (c *checkedLog) StoreLogs(logs []*raft.Log) error {
	var size int64
	for _, l := range logs {
		if l.Type == raft.LogCommand {
			size += int64(len(l.Data))
			l.Extensions = binary.LittleEndian.AppendUint32(nil, crc32.Checksum(l.Data, castagnoli))
		}
	}
	began := c.clock.Now()
	err := c.leap(logs)
	if err == nil {
		err = c.LogStore.StoreLogs(logs)
	}
	c.health.writes.add(c.clock.Now().Sub(began))
	c.health.wrote(err)
	c.health.grew(size)
	return err
}

// IsMonotonic implements raft.MonotonicLogStore: when a server is sent a snapshot the library drops the entries from before it, which do
// not reach as far as it does.
func (*checkedLog) IsMonotonic() bool { return true }

// leap drops what stands in the log if the next entries leave some out. The library has a snapshot with all that is before them then, and
// was interrupted before it dropped that itself.
func (c *checkedLog) leap(logs []*raft.Log) error {
	last, err := c.LastIndex()
	if err != nil || last == 0 || len(logs) == 0 || logs[0].Index <= last+1 {
		return err
	}
	first, err := c.FirstIndex()
	if err != nil {
		return err
	}
	return c.DeleteRange(first, last)
}

// verify reads the whole log and checks that nothing is missing or changed behind the entries that a snapshot stands for. Programs of
// before dropped nothing when they were sent one. It returns how many bytes the entries have.
func verify(s raft.LogStore, snapshot uint64) (size int64, err error) {
	first, err := s.FirstIndex()
	if err != nil {
		return 0, err
	}
	last, err := s.LastIndex()
	if err != nil || first == 0 {
		return 0, err
	}
	for i := first; i <= last; i++ {
		var l raft.Log
		if err := s.GetLog(i, &l); errors.Is(err, raft.ErrLogNotFound) && i <= snapshot {
			continue
		} else if err != nil {
			return 0, fmt.Errorf("entry %d of %d to %d: %w", i, first, last, err)
		}
		if l.Index != i {
			return 0, fmt.Errorf("entry %d of %d to %d calls itself %d", i, first, last, l.Index)
		}
		if l.Type == raft.LogCommand && !intact(&l) {
			return 0, fmt.Errorf("entry %d of %d to %d has a wrong checksum", i, first, last)
		}
		size += int64(len(l.Data))
	}
	return size, nil
}

func intact(l *raft.Log) bool {
	return len(l.Extensions) == 4 && binary.LittleEndian.Uint32(l.Extensions) == crc32.Checksum(l.Data, castagnoli)
}

// patientStable retries until the disk takes the write: raft panics if its term cannot be stored, and the process has
// tasks to look after while the disk is full.
type patientStable struct {
	raft.StableStore
	health *health
	clock  clock.Clock
}

const stableRetry = 250 * time.Millisecond

// Set implements raft.StableStore.
func (p *patientStable) Set(key, value []byte) error {
	return p.retry(func() error { return p.StableStore.Set(key, value) })
}

// SetUint64 implements raft.StableStore.
func (p *patientStable) SetUint64(key []byte, value uint64) error {
	return p.retry(func() error { return p.StableStore.SetUint64(key, value) })
}

func (p *patientStable) retry(write func() error) error {
	for {
		err := write()
		p.health.wrote(err)
		if err == nil {
			return nil
		}
		t := p.clock.NewTimer(stableRetry)
		select {
		case <-t.C():
		case <-p.health.closing:
			t.Stop()
			return nil // raft is stopping and would panic
		}
	}
}
