package runner

import (
	"encoding/json"
	"sync"

	"github.com/drover-project/drover/internal/appendlog"
)

// The journal is a file of JSON lines, one for each claim and release. A line is written before the claim is answered
// and needs no fsync: it outlives this process, and a machine that loses it has lost the runners too.

// journalLimit is the size from which the journal is written anew without what was recorded.
const journalLimit = 1 << 20

// pending holds the raw lines of one allocation that still count. A release outlasts its claim.
type pending struct{ claim, release []byte }

// journal is the open file and what of it is still to be kept when it is written anew.
type journal struct {
	lease uint64 // stands in its lines

	mu      sync.Mutex // guards what follows
	log     *appendlog.File
	pending map[string]pending // by allocation: what is not recorded yet
}

// openJournal opens the file, or makes it; with an empty path all calls succeed and keep nothing.
func openJournal(path string, lease uint64) (*journal, error) {
	log, err := appendlog.Open(path, appendlog.Lines)
	if err != nil {
		return nil, err
	}
	return &journal{lease: lease, log: log, pending: map[string]pending{}}, nil
}

// read returns all lines. What is damaged is left out: what is unknown is destroyed by reconciling, not handed out.
func (j *journal) read() (lines []Line, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	err = j.log.Read(func(raw []byte, _ appendlog.Span) {
		var line Line
		if json.Unmarshal(raw, &line) == nil {
			lines = append(lines, line)
			j.keep(line, raw)
		}
	})
	return lines, err
}

// keep notes a line as pending; a later line of the same kind replaces the earlier. mu is held.
func (j *journal) keep(line Line, raw []byte) {
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

func (j *journal) claim(c AllocClaim) error { return j.write(Line{Claim: &c, Lease: j.lease}) }
func (j *journal) release(allocID string, asked bool) error {
	return j.write(Line{Release: allocID, Asked: asked, Lease: j.lease})
}

// write appends one line. On an error the caller must not act as if the line were there.
func (j *journal) write(line Line) (err error) {
	if !j.log.Kept() {
		return nil
	}
	raw, err := line.append(make([]byte, 0, lineSize))
	if err != nil {
		return err
	}
	raw = append(raw, '\n')
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.log.Append(raw); err != nil {
		return err
	}
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

// forget leaves of each allocation what left returns. A claim without a release is dropped too, since both callers
// drop it. The file itself only shrinks from its size limit on.
func (j *journal) forget(allocIDs []string, left func(pending) pending) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, id := range allocIDs {
		if p := left(j.pending[id]); p.release == nil {
			delete(j.pending, id)
		} else {
			j.pending[id] = p
		}
	}
	if j.log.Size() < journalLimit {
		return nil
	}
	var all []byte
	for _, p := range j.pending {
		all = append(append(all, p.claim...), p.release...)
	}
	return j.log.Replace(all)
}

// empty forgets everything.
func (j *journal) empty() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pending = map[string]pending{}
	return j.log.Replace(nil)
}

func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.log.Close()
}
