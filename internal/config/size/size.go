package size

import (
	"math"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
)

// Parse reads a number of bytes such as "1M" or "64 KiB", as Nomad does: K, M and G are decimal, with an "i" binary, and
// a "B" may follow. Empty is def. Errors: Invalid.
func Parse(text string, def int) (int, error) {
	n, err := Bytes(text, int64(def), math.MaxInt32)
	return int(n), err
}

// Bytes is Parse up to a largest number of bytes.
func Bytes(text string, def, most int64) (int64, error) {
	if text == "" {
		return def, nil
	}
	at := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if at < 0 {
		at = len(text)
	}
	n, err := strconv.ParseFloat(text[:at], 64)
	unit, known := map[string]float64{
		"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40,
	}[strings.TrimSuffix(strings.ToLower(strings.TrimSpace(text[at:])), "b")]
	if err != nil || !known || n*unit > float64(most) {
		return 0, drover.Errorf(drover.Invalid, "%q is no size such as 1M or 64KiB, up to %dG", text, (most+1)/1e9)
	}
	return int64(n * unit), nil
}
