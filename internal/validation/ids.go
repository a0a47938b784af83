package validation

import (
	"fmt"
	"strconv"
	"strings"
)

// IDs are numbers of users or groups, as ranges with both ends.
type IDs [][2]uint32

// ParseIDs reads a list such as "0,10-15,22", as Nomad's plugins have it; "" is none.
func ParseIDs(text string) (ids IDs, err error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		low, high, ranged := strings.Cut(part, "-")
		if !ranged {
			high = low
		}
		first, err1 := strconv.ParseUint(strings.TrimSpace(low), 10, 32)
		last, err2 := strconv.ParseUint(strings.TrimSpace(high), 10, 32)
		if err1 != nil || err2 != nil || first > last {
			return nil, fmt.Errorf("%q is no id and no range of ids such as 10-15", strings.TrimSpace(part))
		}
		ids = append(ids, [2]uint32{uint32(first), uint32(last)}) // parsed as 32 bits
	}
	return ids, nil
}

// Has reports whether an id is among them.
func (ids IDs) Has(id uint32) bool {
	for _, r := range ids {
		if r[0] <= id && id <= r[1] {
			return true
		}
	}
	return false
}
