package fleet

import (
	"fmt"
	"math"
	"strings"
)

// Money writes an amount readably, without a currency, as the policies' prices have none: two digits after the point, and
// of small amounts the first two that are not zero.
func Money(v float64) string {
	a := math.Abs(v)
	if a >= 0.995 || a < 1e-12 {
		return fmt.Sprintf("%.2f", v)
	}
	text := fmt.Sprintf("%.*f", max(2, 1-int(math.Floor(math.Log10(a)))), v)
	for len(text)-strings.IndexByte(text, '.') > 3 && text[len(text)-1] == '0' {
		text = text[:len(text)-1]
	}
	return text
}
