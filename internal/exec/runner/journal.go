package runner

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"drover"
)

// The journal is a file of JSON lines, one for each claim and release. A line is written before the claim is answered
// and needs no fsync: it outlives this process, and a machine that loses it has lost the runners too.

// journalLimit is the size from which the journal is written anew without what was recorded.
const journalLimit = 1 << 20

type journalLine struct {
	Claim   *AllocClaim `json:"claim,omitempty"`
	Release string      `json:"release,omitempty"` // an allocation
}

type pending struct{ claim, release []byte }

type journal struct {
	path string

	mu      sync.Mutex // guards what follows
	file    *os.File   // nil: nothing is kept
	size    int64
	pending map[string]pending // by allocation: what is not recorded yet
}

func openJournal(path string) (*journal, error) {
	j := &journal{path: path, pending: map[string]pending{}}
	if path == "" {
		return j, nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, drover.Errorf(drover.Internal, "opening the claims journal: %w", err)
	}
	j.file = f
	return j, nil
}

// read returns all lines. A torn last line is dropped: its claim was never answered.
func (j *journal) read() (lines []journalLine, err error) {
	if j.file == nil {
		return nil, nil
	}
	r := bufio.NewReader(io.NewSectionReader(j.file, 0, 1<<62))
	for {
		raw, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			if len(raw) > 0 {
				err = j.cut(int64(len(raw)))
			} else {
				err = nil
			}
			return lines, err
		}
		if err != nil {
			return nil, fmt.Errorf("reading the claims journal: %w", err)
		}
		j.size += int64(len(raw))
		var line journalLine
		if json.Unmarshal(raw, &line) != nil {
			continue // damaged; what is unknown is destroyed by reconciling, not handed out
		}
		lines = append(lines, line)
		j.keep(line, raw)
	}
}

// cut removes a torn end, so that the next line stands on its own.
func (j *journal) cut(torn int64) error {
	if err := j.file.Truncate(j.size); err != nil {
		return fmt.Errorf("cutting %d torn bytes off the claims journal: %w", torn, err)
	}
	return nil
}

func (j *journal) keep(line journalLine, raw []byte) {
	if line.Claim != nil {
		p := j.pending[line.Claim.AllocID]
		p.claim = raw
		j.pending[line.Claim.AllocID] = p
		return
	}
	p := j.pending[line.Release]
	p.release = raw
	j.pending[line.Release] = p
}

func (j *journal) claim(c AllocClaim) error     { return j.write(journalLine{Claim: &c}) }
func (j *journal) release(allocID string) error { return j.write(journalLine{Release: allocID}) }
func (j *journal) write(line journalLine) (err error) {
	if j.file == nil {
		return nil
	}
	raw, err := json.Marshal(line)
	if err != nil {
		return err
	}
	raw = append(raw, '\n')
	j.mu.Lock()
	defer j.mu.Unlock()
	n, err := j.file.Write(raw)
	if err != nil {
		if n > 0 {
			_ = j.file.Truncate(j.size) // a torn line is also dropped when it is read
		}
		return err
	}
	j.size += int64(n)
	j.keep(line, raw)
	return nil
}

// claimsRecorded forgets claims that are in the state now.
func (j *journal) claimsRecorded(allocIDs []string) error {
	return j.forget(allocIDs, func(p pending) pending { return pending{release: p.release} })
}

// ended forgets allocations that the state knows as ended or stopped.
func (j *journal) ended(allocIDs []string) error {
	return j.forget(allocIDs, func(pending) pending { return pending{} })
}

func (j *journal) forget(allocIDs []string, left func(pending) pending) error {
	if j.file == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, id := range allocIDs {
		if p := left(j.pending[id]); p.release == nil {
			delete(j.pending, id)
		} else {
			j.pending[id] = p
		}
	}
	if j.size < journalLimit {
		return nil
	}
	if len(j.pending) == 0 {
		j.size = 0
		return j.file.Truncate(0)
	}
	return j.rewrite()
}

// rewrite replaces the file by one with the pending lines only.
func (j *journal) rewrite() error {
	var all bytes.Buffer
	for _, p := range j.pending {
		all.Write(p.claim)
		all.Write(p.release)
	}
	next := j.path + ".new"
	f, err := os.OpenFile(next, os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(all.Bytes()); err == nil {
		err = os.Rename(next, j.path)
	}
	if err != nil {
		_ = f.Close()
		return err
	}
	_ = j.file.Close() // only ever written with Write
	j.file, j.size = f, int64(all.Len())
	return nil
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.file.Close()
}
