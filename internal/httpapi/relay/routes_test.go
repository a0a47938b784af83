package relay

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/fleet"
	"github.com/drover-project/drover/internal/httpapi/native"
	"github.com/drover-project/drover/internal/httpapi/nomad"
	"github.com/drover-project/drover/internal/httpapi/poseidon"
)

func faces() map[string]httpapi.Face {
	return map[string]httpapi.Face{
		"nomad": nomad.New(nomad.Config{Pprof: true}), "poseidon": poseidon.New(poseidon.Config{}, poseidon.Deps{}),
		"native": native.New(native.Config{}, native.Deps{}), "fleet": &fleet.Face{},
	}
}

// Each route of every face says what right its requests need.
func TestEveryRouteSaysWhatItNeeds(t *testing.T) {
	t.Parallel()
	open := map[string]bool{"": true}
	for name, face := range faces() {
		for _, route := range face.Routes() {
			open[route.Need.Group()] = true
			require.True(t, route.Need.Said(), "%s: %s", name, route.Pattern)
			require.Equal(t, route.Need.Varies(), len(route.Need.Cases()) > 0, "%s: %s", name, route.Pattern)
			for _, c := range route.Need.Cases() {
				require.True(t, c.Need.Said() && !c.Need.Varies(), "%s: %s", name, c.Path)
			}
		}
	}
	require.ElementsMatch(t, append(acl.OpenGroups(), ""), slices.Collect(maps.Keys(open)), "what open_routes names is there")
}

// Each route of every face says which agent answers it, and with what of the request it decides.
func TestEveryRouteSaysWhere(t *testing.T) {
	t.Parallel()
	for name, face := range faces() {
		for _, route := range face.Routes() {
			require.True(t, route.Where.Place.Said(), "%s: %s", name, route.Pattern)
			switch route.Where.Place {
			case httpapi.AtRunner, httpapi.AtExecution, httpapi.AtClaim, httpapi.AtNode, httpapi.AtAllocation, httpapi.AtMember:
				require.NotNil(t, route.Where.Key, "%s: %s", name, route.Pattern)
			default:
			}
		}
	}
}
