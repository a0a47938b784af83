package nomadbackend

import (
	"bytes"
	"strconv"
)

// A cluster's exit frame may overtake output (docker's do). So the wrapper ends each stream with a trailer, which
// carries the exit code, and lingers a little; a stream without a trailer at its end was cut.
//
//	RS <execution's id> <code> RS
const trailerByte = 0x1e

// trailerScript runs the rest of the script in a subshell, and says how it ended. $1 is the execution's id. Signals of a
// terminal are the command's, not the wrapper's.
func trailerScript(script string, streams int) string {
	end := `printf '\036%s %s\036' "$drover_id" "$drover_code"`
	if streams > 1 {
		end += "\n" + end + " >&2"
	}
	return "trap : INT QUIT TERM HUP\ndrover_id=$1; shift\n(\n" + script + ")\ndrover_code=$?\n" + end + "\nsleep 1; exit $drover_code\n"
}

// cutter takes the trailer off a stream.
type cutter struct {
	marker []byte // how a trailer begins
	held   []byte // what may be its beginning
	ended  bool   // the trailer was there
	code   int
}

// newCutter returns a cutter for one stream. The id in the marker keeps a program from ending its own output early
// by accident.
func newCutter(executionID string) *cutter {
	return &cutter{marker: append(append([]byte{trailerByte}, executionID...), ' ')}
}

// take returns what of the stream so far is surely output. What follows the trailer is nobody's.
func (c *cutter) take(p []byte) (output []byte) {
	if c.ended {
		return nil
	}
	all := append(c.held, p...)
	hold := len(all) - overlap(all, c.marker)
	for from := 0; ; {
		at := bytes.Index(all[from:], c.marker)
		if at < 0 {
			break
		}
		at += from
		number, _, whole := bytes.Cut(all[at+len(c.marker):], []byte{trailerByte})
		code, err := strconv.Atoi(string(number[:min(len(number), maxCode+1)]))
		switch {
		case whole && err == nil && len(number) <= maxCode:
			c.ended, c.code, c.held = true, code, nil
			return all[:at:at]
		case !whole && len(number) <= maxCode:
			hold = min(hold, at) // the rest of it may come
		}
		from = at + 1
	}
	c.held = bytes.Clone(all[hold:])
	return all[:hold:hold]
}

// maxCode is how many digits an exit code has.
const maxCode = 3

// rest returns what was held back of a stream that ended without a trailer.
func (c *cutter) rest() []byte {
	if c.ended {
		return nil
	}
	return c.held
}

// overlap is how many of all's last bytes are the beginning of marker.
func overlap(all, marker []byte) int {
	for n := min(len(all), len(marker)-1); n > 0; n-- {
		if bytes.HasSuffix(all, marker[:n]) {
			return n
		}
	}
	return 0
}
