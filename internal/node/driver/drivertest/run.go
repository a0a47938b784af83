package drivertest

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Run runs the whole suite. Afterwards nothing of the driver is left on the machine.
func Run(t *testing.T, h Harness) {
	t.Helper()
	var before []string
	if h.Leftovers != nil {
		before = h.Leftovers(t)
	}
	t.Run("suite", func(t *testing.T) { h.all(t) })
	if h.Leftovers != nil {
		require.Equal(t, before, h.Leftovers(t), "the driver left something behind")
	}
}

// check is one promise of a driver, tried in a suite of its own; needs are the abilities without which it is left out.
type check struct {
	name  string
	run   func(*suite)
	needs []Ability
}

// all runs the checks at once and returns when all have ended, so that Run can compare what is left afterwards.
func (h Harness) all(t *testing.T) {
	t.Helper()
	checks := slices.Concat(taskChecks(), execChecks(), fileChecks(), hostileChecks())
	for _, c := range checks {
		if missing := h.without(c.needs); missing != "" {
			t.Logf("%s is not tried: %s", c.name, missing)
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(h.suite(t))
		})
	}
}

// without returns why a check cannot be tried, "" if it can.
func (h Harness) without(needs []Ability) string {
	for _, a := range needs {
		if why, missing := h.Missing[a]; missing {
			return "no " + string(a) + ": " + why
		}
	}
	return ""
}
