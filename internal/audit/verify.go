package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/drover-project/drover"
)

// Check is what Verify is asked to compare the files with.
type Check struct {
	Key  []byte // with which the first seal was made; nil: seals are not checked
	Head *Head  // a line that is known to have been written, and must be there; nil: none is
}

// Head is a place in a chain.
type Head struct {
	Seq  uint64
	Hash string
}

// Verified is what Verify found to be whole.
type Verified struct {
	Lines, Seals int
	First, Last  Head
	Sealed       uint64    // number of the last line that a seal with the right key attests; 0 = none
	SealedAt     time.Time // when the last seal was made
	Dropped      uint64    // lines that their agents themselves left out
}

// Verify reads the files of one sink, in any order, and checks that they are one chain without gap. Errors: Conflict, with file and
// number of the first line that is broken; those of the disk.
func Verify(paths []string, want Check) (*Verified, error) {
	files := make([]*part, 0, len(paths))
	for _, path := range paths {
		f, err := firstOf(path)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b *part) int { return cmp.Compare(a.first, b.first) })
	v := &verifier{want: want, key: want.Key}
	for _, f := range files {
		if err := v.file(f.path); err != nil {
			return &v.found, err
		}
	}
	return &v.found, v.end()
}

// part is a file of a chain.
type part struct {
	path  string
	first uint64 // number of its first line
}

func firstOf(path string) (*part, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	line, err := bufio.NewReader(f).ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	_, r, err := open(bytes.TrimSuffix(line, []byte("\n")))
	if err != nil {
		return nil, broken(path, 1, "%w", err)
	}
	return &part{path, r.Seq}, nil
}

func broken(path string, line int, format string, args ...any) error {
	return drover.Errorf(drover.Conflict, "%s:%d: %w", path, line, fmt.Errorf(format, args...))
}

// verifier reads lines one after the other.
type verifier struct {
	want   Check
	found  Verified
	key    []byte // of the epoch
	epoch  uint64
	seen   bool // of want.Head
	torn   []byte
	begun  bool
	sealed bool // a seal was seen
}

// file reads a file.
func (v *verifier) file(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<20)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		switch {
		case err == nil:
			line = line[:len(line)-1]
		case !errors.Is(err, io.EOF):
			return err
		case len(line) == 0 && v.torn != nil:
			return broken(path, n-1, "the end of the line is missing, and no start of the agent tells of that")
		case len(line) == 0:
			return nil
		default:
			return broken(path, n, "the end of the line is missing: it was cut, or the agent that wrote it did not start again since")
		}
		if err := v.line(line); err != nil {
			return broken(path, n, "%w", err)
		}
	}
}

// line checks the next line.
func (v *verifier) line(line []byte) error {
	signed, r, err := open(line)
	if err != nil {
		if v.torn != nil {
			return err
		}
		v.torn = slices.Clone(line) // the next line has to tell of it
		return nil
	}
	start := r.Type == startType
	if v.torn != nil {
		sum := sha256.Sum256(v.torn)
		if !start || r.Torn != len(v.torn) || r.TornHash != hexOf(sum[:]) {
			return drover.Errorf(drover.Conflict, "the line before was changed, or is none of an audit")
		}
		v.torn = nil
	}
	former := v.found.Last
	switch {
	case !v.begun && !start:
		return drover.Errorf(drover.Conflict, "the file does not begin with a start: lines before it are missing")
	case !v.begun && r.Former != nil:
		former = Head{Seq: r.Seq - 1, Hash: *r.Former}
	case start && r.Former != nil && *r.Former != former.Hash:
		return drover.Errorf(drover.Conflict, "the agent went on from another line than the one before: between line %d and %d lines are missing",
			former.Seq, r.Seq)
	}
	if got := digest(former.Hash, signed); got != r.Hash {
		return drover.Errorf(drover.Conflict, "the line, or the end of the one before, was changed: its digest would be %s", got)
	}
	if r.Seq != former.Seq+1 {
		return drover.Errorf(drover.Conflict, "lines %d to %d are missing: they were there when the agent stopped, and not when it started",
			former.Seq+1, r.Seq-1)
	}
	v.note(r, former)
	if r.Type == sealType {
		return v.seal(r, former)
	}
	return nil
}

// note counts a line that is whole.
func (v *verifier) note(r record, former Head) {
	if !v.begun {
		v.begun, v.found.First = true, Head{r.Seq, r.Hash}
	}
	v.found.Lines++
	v.found.Dropped += r.Dropped
	v.found.Last = Head{r.Seq, r.Hash}
	if h := v.want.Head; h != nil && (*h == v.found.Last || *h == former) {
		v.seen = true
	}
}

// seal checks a seal. The key follows from the first one.
func (v *verifier) seal(r record, former Head) error {
	switch {
	case r.Epoch == 0 || r.Epoch > r.Seq:
		return drover.Errorf(drover.Conflict, "there cannot be a seal %d", r.Epoch)
	case v.sealed && r.Epoch != v.epoch:
		return drover.Errorf(drover.Conflict, "it is seal %d, and %d is due: lines between two seals are missing", r.Epoch, v.epoch)
	case !v.sealed && v.found.First.Seq == 1 && r.Epoch != 1:
		return drover.Errorf(drover.Conflict, "it is seal %d, and 1 is due: the chain began anew", r.Epoch)
	}
	if v.key != nil {
		if !v.sealed { // earlier files were not given
			for range r.Epoch - 1 {
				v.key = nextKey(v.key)
			}
		}
		if !hmac.Equal([]byte(sealOf(v.key, r.Epoch, former.Hash)), []byte(r.MAC)) {
			return drover.Errorf(drover.Conflict, "the seal was made with another key: this line or one after line %d was forged", v.found.Sealed)
		}
		v.found.Sealed = r.Seq
		v.key = nextKey(v.key)
	}
	v.sealed, v.epoch = true, r.Epoch+1
	v.found.Seals++
	v.found.SealedAt = r.CreatedAt
	return nil
}

// end checks what only the last line tells.
func (v *verifier) end() error {
	h := v.want.Head
	switch {
	case !v.begun:
		return drover.Errorf(drover.Invalid, "there is no line in the files")
	case h == nil || v.seen:
		return nil
	case h.Seq > v.found.Last.Seq:
		return drover.Errorf(drover.Conflict, "the files end with line %d, and line %d was written: the end is missing", v.found.Last.Seq, h.Seq)
	}
	return drover.Errorf(drover.Conflict, "line %d is not the one that was written, or stands in a file that was not given", h.Seq)
}
