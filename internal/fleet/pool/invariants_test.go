package pool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/scaler"
)

// broken returns what f breaks; "" if nothing.
func broken(f func()) (what string) {
	defer func() { what, _ = recover().(string) }()
	f()
	return ""
}

func TestABusyMachineIsDestroyedOnlyByAPersonOrTheCloud(t *testing.T) {
	t.Parallel()
	at := time.Unix(5, 0)
	for name, c := range map[string]struct {
		machine fleet.Instance
		why     string
		breaks  bool
	}{
		"idle":              {fleet.Instance{}, scaler.WhyOrphan, false},
		"busy":              {fleet.Instance{Work: 1}, scaler.WhyOrphan, true},
		"by a person":       {fleet.Instance{Work: 1}, WhyKilled, false},
		"by the cloud":      {fleet.Instance{Work: 1, InterruptAt: at}, "interrupted", false},
		"its agent is gone": {fleet.Instance{Work: 1, LostAt: at}, "lost", false},
	} {
		c.machine.ID = "i-1"
		what := broken(func() { checkIdle(&c.machine, c.why) })
		require.Equal(t, c.breaks, what != "", name)
		if c.breaks {
			require.Contains(t, what, "invariant 8 (busy is kept): i-1")
		}
	}
}

func TestAListedMachineOfOursIsKnown(t *testing.T) {
	t.Parallel()
	ours := map[string]string{fleet.TagOwner: "me"}
	known := &entry{Instance: &fleet.Instance{Durable: fleet.Durable{ID: "i-1"}}}
	c := &Core{cfg: Config{Owner: "me"}, table: map[string]*entry{"i-1": known}}
	forgotten := &entry{Instance: &fleet.Instance{Durable: fleet.Durable{ID: "i-2"}}}
	for name, x := range map[string]struct {
		machine provider.Machine
		found   *entry
		breaks  bool
	}{
		"known":            {provider.Machine{Tags: ours}, known, false},
		"another's":        {provider.Machine{Tags: map[string]string{fleet.TagOwner: "you"}}, nil, false},
		"over":             {provider.Machine{Tags: ours, State: provider.Terminated}, nil, false},
		"about to be over": {provider.Machine{Tags: ours, State: provider.Terminating}, nil, false},
		"not found":        {provider.Machine{Tags: ours}, nil, true},
		"forgotten":        {provider.Machine{Tags: ours}, forgotten, true},
	} {
		x.machine.ID = "m-1"
		what := broken(func() { c.checkOwned(&x.machine, x.found) })
		require.Equal(t, x.breaks, what != "", name)
		if x.breaks {
			require.Contains(t, what, "invariant 9 (instances owned): m-1")
		}
	}
}

func TestAnInstanceMakesOnlyTheStepsThatItHas(t *testing.T) {
	t.Parallel()
	i := &fleet.Instance{Durable: fleet.Durable{State: fleet.InstanceGone}}
	require.Contains(t, broken(func() { become(i, fleet.InstanceActive, time.Time{}, "", "") }), "invariant 0 (local)")
}
