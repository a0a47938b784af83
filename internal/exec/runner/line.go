package runner

import (
	"encoding/json"
	"strconv"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/jsontext"
)

// lineSize is room for most lines, in bytes.
const lineSize = 384

// append appends the line as JSON that encoding/json reads as the same line. It is written by hand, since every claim waits for it.
func (l Line) append(to []byte) (_ []byte, err error) {
	to = append(to, '{')
	start := len(to)
	if l.Claim != nil {
		if to, err = l.Claim.append(append(to, `"claim":`...)); err != nil {
			return nil, err
		}
	}
	if l.Release != "" {
		to = jsontext.AppendString(append(between(to, start), `"release":`...), l.Release)
	}
	if l.Asked {
		to = append(between(to, start), `"asked":true`...)
	}
	if l.Lease != 0 {
		to = strconv.AppendUint(append(between(to, start), `"lease":`...), l.Lease, 10)
	}
	return append(to, '}'), nil
}

// between appends a comma unless the object, whose members begin at start, has none yet.
func between(to []byte, start int) []byte {
	if len(to) == start {
		return to
	}
	return append(to, ',')
}

func (c *AllocClaim) append(to []byte) (_ []byte, err error) {
	to = jsontext.AppendString(append(to, `{"alloc":`...), c.AllocID)
	if to, err = appendClaim(append(to, `,"claim":`...), &c.Claim); err != nil {
		return nil, err
	}
	if c.Bounded {
		to = append(to, `,"bounded":true`...)
	}
	return append(to, '}'), nil
}

func appendClaim(to []byte, c *drover.Claim) ([]byte, error) {
	to = jsontext.AppendString(append(to, `{"RunnerID":`...), c.RunnerID)
	to = strconv.AppendInt(append(to, `,"ClaimedAt":`...), c.ClaimedAt, 10)
	to = strconv.AppendInt(append(to, `,"IdleTimeout":`...), int64(c.IdleTimeout), 10)
	to = jsontext.AppendMap(append(to, `,"Labels":`...), c.Labels)
	to = jsontext.AppendMap(append(to, `,"Env":`...), c.Env)
	if c.Limits != nil {
		limits, err := json.Marshal(c.Limits)
		if err != nil {
			return nil, err
		}
		to = append(append(to, `,"Limits":`...), limits...)
	}
	return append(to, '}'), nil
}
