package fleet

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the API tells of a machine has these keys: clients read them.
func TestKeysOfAnInstance(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(Instance{})
	require.NoError(t, err)
	keys := map[string]any{}
	require.NoError(t, json.Unmarshal(data, &keys))
	require.Equal(t, []string{
		"Address", "Adopted", "Ambiguous", "Behavior", "Billing", "Bought", "Capacity", "Charged", "CostBefore", "CreatedAt", "ExpiresAt",
		"GoneAt", "Hedge", "ID", "IdleAt", "InterruptAt", "LastError", "LostAt", "Market", "Movable", "NodeID", "Offering", "PlannedAt",
		"Pool", "Price", "Provider", "ProviderID", "Quiet", "QuotaGroup", "QuotaUnits", "ReadyAt", "Reason", "RepricedAt", "State",
		"StateAt", "Tags", "Template", "Type", "Used", "Why", "Work", "Zone",
	}, slices.Sorted(maps.Keys(keys)))
}
