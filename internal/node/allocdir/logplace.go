package allocdir

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/logtimes"
)

// lineBack is how far the beginning of a line is looked for, in bytes.
const lineBack = 64 << 10

// startAt positions in a rotated file by its name. If that was removed meanwhile, reading begins with the next that is there. Errors:
// Invalid, of a file of another log.
func (f *follower) startAt(numbers []int) error {
	name, ok := strings.CutPrefix(f.request.File, f.rotatedPrefix())
	number, err := strconv.Atoi(name)
	if !ok || err != nil || number < 0 || f.request.Origin == "end" {
		return drover.Errorf(drover.Invalid, "file %q: want a file of this log, as the pieces of the log name it, and no origin; for example %s",
			f.request.File, f.rotated(numbers[0]))
	}
	for _, n := range numbers {
		if n >= number {
			f.number = n
			if err := f.openAt(f.rotated(n), 0); err != nil || n != number {
				return err
			}
			info, err := f.file.Stat()
			if err != nil {
				return mapError(f.name, err)
			}
			f.offset = min(f.request.Offset, info.Size())
			return nil
		}
	}
	f.number = number // the next that comes
	return nil
}

// startSince positions where begins what was written since a time: in the first file that was written to since, by its marks.
func (f *follower) startSince(numbers []int) error {
	if f.request.Offset != 0 || f.request.Origin == "end" {
		return drover.Errorf(drover.Invalid, "since: it goes with no offset, and no origin")
	}
	since := time.UnixMilli(f.request.Since)
	for _, n := range numbers {
		if err := f.openAt(f.rotated(n), 0); err != nil {
			continue // removed meanwhile
		}
		f.number = n
		info, err := f.file.Stat()
		if err != nil {
			return mapError(f.name, err)
		}
		f.offset = info.Size()
		if info.ModTime().Add(logtimes.Grain).Before(since) {
			continue // all of it is older; of the last file its end is left
		}
		f.offset = f.lineStart(logtimes.Since(f.marks(n, info.Size(), 0), info.Size(), since))
		return nil
	}
	return nil
}

// marks reads those of a rotated file behind the first bytes of them; none if they cannot be read.
func (f *follower) marks(n int, size, behind int64) []byte {
	file, err := f.dir.openRegular("alloc/logs/" + logtimes.Name(strings.TrimPrefix(f.rotated(n), "alloc/logs/")))
	if err != nil {
		return nil
	}
	defer file.Close()
	marks, err := io.ReadAll(io.NewSectionReader(file, behind, max(0, logtimes.Limit(size)-behind)))
	if err != nil {
		return nil
	}
	return marks
}

// lineStart is the beginning of the line that the open file has at an offset; the offset, if that is too far away.
func (f *follower) lineStart(offset int64) int64 {
	before := make([]byte, min(offset, lineBack))
	from := offset - int64(len(before))
	if _, err := f.file.ReadAt(before, from); err != nil {
		return offset
	}
	if i := bytes.LastIndexByte(before, '\n'); i >= 0 || from == 0 {
		return from + int64(i) + 1
	}
	return offset
}
