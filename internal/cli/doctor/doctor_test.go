package doctor

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/term"
)

func TestVerdicts(t *testing.T) {
	t.Parallel()
	ok := finding{Check: "kernel", State: findingOK, Needed: true}
	require.NoError(t, verdict([]finding{ok, {Check: "docker", State: findingMissing}}), "only jobs with docker need it")
	require.EqualError(t, verdict([]finding{ok, {Check: "overlay", State: findingMissing, Needed: true}}),
		"sandboxes cannot run here, for want of: overlay")
	err := verdict([]finding{ok, {Check: "fork bomb", State: findingEscaped}})
	require.EqualError(t, err, "sandboxes are not safe here: fork bomb")
	var exit *term.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, term.ExitFailure, exit.Code)
}

func TestHostileProgramsAreListed(t *testing.T) {
	t.Parallel()
	probes := Probes{Try: func(_ context.Context, dir string, tell func(program, state, says string)) error {
		tell("fork bomb", "contained", "in "+dir)
		return errors.New("no more")
	}}
	list := tryGuests(t.Context(), probes, "/scratch")
	require.Equal(t, []finding{
		{Check: "fork bomb", State: "contained", Says: "in /scratch", Kind: kindHostile},
		{Check: "run a sandbox", State: findingMissing, Says: "no more", Needed: true, Kind: kindHostile},
	}, list)
	var b bytes.Buffer
	require.NoError(t, report(&term.App{Out: &b}, list, nil))
	require.Contains(t, b.String(), "Hostile program  State      Says\nfork bomb        contained  in /scratch\n")
	require.Contains(t, b.String(), "No agent answers")
}

func TestDriversThatAreHeldLessAreWeak(t *testing.T) {
	t.Parallel()
	list := driversOf(&drover.Node{Drivers: map[string]*drover.DriverInfo{
		"docker":  {Detected: true},
		"sandbox": {Detected: true, Healthy: true, Attributes: map[string]string{"driver.sandbox.weaker": "no root"}},
		"raw":     {Detected: true, Healthy: true},
	}})
	require.Equal(t, []string{findingMissing, findingOK, findingWeak}, []string{list[0].State, list[1].State, list[2].State})
	require.True(t, list[2].Needed)
}
