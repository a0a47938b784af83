package hook

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

func TestWaitsOfTheNode(t *testing.T) {
	t.Parallel()
	wait := func(low, high time.Duration) *drover.WaitConfig {
		w := &drover.WaitConfig{Min: &low}
		if high > 0 {
			w.Max = &high
		}
		return w
	}
	bounds := wait(5*time.Second, 10*time.Second)
	for name, c := range map[string]struct {
		own, usual, bounds, want *drover.WaitConfig
	}{
		"nothing":                   {nil, nil, nil, nil},
		"bounds alone do not wait":  {nil, nil, bounds, nil},
		"its own":                   {wait(time.Second, 2*time.Second), wait(time.Minute, 0), nil, wait(time.Second, 2*time.Second)},
		"the node's":                {nil, wait(time.Second, 4*time.Second), nil, wait(time.Second, 4*time.Second)},
		"too short":                 {wait(time.Second, 2*time.Second), nil, bounds, wait(5*time.Second, 5*time.Second)},
		"too long":                  {wait(6*time.Second, time.Minute), nil, bounds, wait(6*time.Second, 10*time.Second)},
		"without an end":            {wait(6*time.Second, 0), nil, bounds, wait(6*time.Second, 10*time.Second)},
		"longer than the longest":   {wait(time.Minute, 0), nil, bounds, wait(time.Minute, time.Minute)},
		"within them":               {wait(6*time.Second, 7*time.Second), nil, bounds, wait(6*time.Second, 7*time.Second)},
		"the node's, within bounds": {nil, wait(time.Second, 4*time.Second), bounds, wait(5*time.Second, 5*time.Second)},
		"no longest bound":          {wait(time.Second, 0), nil, wait(5*time.Second, 0), wait(5*time.Second, 0)},
	} {
		require.Equal(t, c.want, TemplateRules{Wait: c.usual, Bounds: c.bounds}.wait(c.own), name)
	}
}
