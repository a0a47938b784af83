package form

import (
	"fmt"
	"time"
)

// Durations reads texts and remembers what was wrong.
type Durations struct{ Wrong []string }

func (d *Durations) Read(key, text string) time.Duration {
	if text == "" {
		return 0
	}
	v, err := time.ParseDuration(text)
	if err != nil || v < 0 {
		d.Wrong = append(d.Wrong, fmt.Sprintf("%s: %q is no duration such as 90s or 1h", key, text))
	}
	return v
}
