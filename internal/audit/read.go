package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/rotation"
)

// mostRead is how much of the files of a record is read for one answer, in bytes.
const mostRead = 8 << 20

// step is how much is read at a time; lines are shorter.
const step = tail

// line is what is read of a line.
type line struct {
	CreatedAt time.Time `json:"created_at"`
	Type      string    `json:"event_type"`
	Seq       uint64    `json:"seq"`
	Payload   struct {
		Stage string `json:"stage"`
		Auth  struct {
			Accessor string `json:"accessor_id"`
			Name     string `json:"name"`
		} `json:"auth"`
		Request struct {
			ID        string `json:"id"`
			Operation string `json:"operation"`
			Endpoint  string `json:"endpoint"`
			Object    string `json:"object"`
			Class     string `json:"class"`
			Namespace struct {
				ID string `json:"id"`
			} `json:"namespace"`
			Meta struct {
				Forwarded string `json:"forwarded_for"`
				Remote    string `json:"remote_address"`
				UserAgent string `json:"user_agent"`
			} `json:"request_meta"`
			Node struct {
				Via string `json:"via"`
			} `json:"node_meta"`
		} `json:"request"`
		Decision struct {
			Allowed bool   `json:"allowed"`
			Reason  string `json:"reason"`
			Needs   string `json:"needs"`
		} `json:"decision"`
		Response struct {
			Status int     `json:"status_code"`
			Took   float64 `json:"took_ms"`
		} `json:"response"`
	} `json:"payload"`
}

// record is the line as the API has it.
func (l *line) record() cluster.AuditRecord {
	p := &l.Payload
	return cluster.AuditRecord{
		Time: l.CreatedAt, Seq: l.Seq, Stage: p.Stage, Class: p.Request.Class, RequestID: p.Request.ID, AccessorID: p.Auth.Accessor,
		TokenName: p.Auth.Name, Operation: p.Request.Operation, Path: p.Request.Endpoint, Object: p.Request.Object,
		Namespace: p.Request.Namespace.ID, Remote: p.Request.Meta.Remote, Forwarded: p.Request.Meta.Forwarded,
		UserAgent: p.Request.Meta.UserAgent, Via: p.Request.Node.Via, Allowed: p.Decision.Allowed, Needs: p.Decision.Needs,
		Reason: p.Decision.Reason, Status: p.Response.Status, Milliseconds: p.Response.Took,
	}
}

// ReadBack finds the newest lines of a file sink that match, of those before a number, or of all if that is 0. It reads a bounded part of
// the files, and says how far it came. Errors: those of the disk.
func ReadBack(f File, q cluster.AuditQuery, before uint64) (cluster.AuditPart, error) {
	r := &reader{query: q, before: before, left: mostRead}
	old, err := rotation.Former(f.Path)
	if err != nil {
		return r.found, err
	}
	for _, path := range slices.Backward(append(old, f.Path)) {
		if err := r.file(path); err != nil && !errors.Is(err, os.ErrNotExist) { // it was just renamed, or removed as too old
			return r.found, err
		}
		if r.done {
			return r.found, nil
		}
	}
	r.found.From = 0
	return r.found, nil
}

// reader reads lines from the newest on.
type reader struct {
	query  cluster.AuditQuery
	before uint64
	left   int64 // bytes that may still be read
	found  cluster.AuditPart
	done   bool
}

// late reports whether a line is newer than what is asked for.
func (r *reader) late(l *line) bool {
	return r.before > 0 && l.Seq >= r.before || !r.query.Until.IsZero() && !l.CreatedAt.Before(r.query.Until)
}

// file reads a file from its end.
func (r *reader) file(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	end, err := r.seek(f, info.Size())
	if err != nil {
		return err
	}
	var rest []byte // the end of a line whose beginning was not read yet
	for end > 0 && !r.done {
		if r.left <= 0 {
			r.done = true
			return nil
		}
		n := min(end, step)
		buf := make([]byte, n, n+int64(len(rest)))
		if _, err := f.ReadAt(buf, end-n); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		end, r.left = end-n, r.left-n
		buf = append(buf, rest...)
		lines := bytes.SplitAfter(buf, []byte("\n"))
		first := 0
		if end > 0 {
			rest, first = lines[0], 1
			if len(rest) > 2*step { // no line of ours
				rest = nil
			}
		}
		for _, text := range slices.Backward(lines[first:]) {
			if r.line(text); r.done {
				return nil
			}
		}
	}
	return nil
}

// seek finds a place of the file from which on all lines are too new; its size if there is none.
func (r *reader) seek(f io.ReaderAt, size int64) (int64, error) {
	if r.before == 0 && r.query.Until.IsZero() {
		return size, nil
	}
	from, to := int64(0), size
	for to-from > 2*step {
		middle := from + (to-from)/2
		in := bufio.NewReaderSize(io.NewSectionReader(f, middle, 2*step), 2*step)
		_, err := in.ReadBytes('\n') // the end of a line
		var text []byte
		if err == nil {
			text, err = in.ReadBytes('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		var l line
		if json.Unmarshal(text, &l) != nil || r.late(&l) { // what is no line is read over later
			to = middle
		} else {
			from = middle
		}
	}
	return min(size, to+2*step), nil
}

// line looks at a line, and is done with the last that is wanted.
func (r *reader) line(text []byte) {
	var l line
	if !bytes.HasSuffix(text, []byte("\n")) || json.Unmarshal(text, &l) != nil || l.Seq == 0 || r.late(&l) {
		return // it is just being written, a start tells of it, or it is too new
	}
	if l.CreatedAt.Before(r.query.Since) {
		r.found.From, r.done = 0, true
		return
	}
	r.found.From, r.found.Time = l.Seq, l.CreatedAt
	if l.Type != "audit" {
		return
	}
	if found := l.record(); r.query.Matches(&found) {
		r.found.Records = append(r.found.Records, found)
		r.done = len(r.found.Records) >= r.query.PerPage
	}
}
