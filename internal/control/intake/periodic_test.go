package intake

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// The library that reads cron lines panics on a span of months that ends before it begins. Such a job is never due; the job
// after it is.
func TestALineThatNamesNoMonthIsNeverDue(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 7, 0, 0, 0, time.UTC)
	p := &drover.PeriodicConfig{SpecType: "cron", Specs: []string{"0 0 * dec-feb *", "* * * 5-1 *"}, TimeZone: "UTC"}
	require.NoError(t, CheckPeriodic(p))
	require.True(t, NextLaunch(p, now).IsZero())
	p.Specs = append(p.Specs, "30 7 * * *")
	require.Equal(t, now.Add(30*time.Minute), NextLaunch(p, now))
}
