package cluster

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The JSON is Nomad's: durations are texts, and what a body leaves out stays as it was.
func TestAutopilotsJSON(t *testing.T) {
	t.Parallel()
	a := DefaultAutopilot()
	data, err := json.Marshal(a)
	require.NoError(t, err)
	require.JSONEq(t, `{"CleanupDeadServers":true,"LastContactThreshold":"200ms","MaxTrailingLogs":250,"MinQuorum":0,
		"ServerStabilizationTime":"10s","EnableRedundancyZones":false,"DisableUpgradeMigration":false,"EnableCustomUpgrades":false,
		"CreateIndex":0,"ModifyIndex":0}`, string(data))
	var back Autopilot
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, a, back)
	require.NoError(t, json.Unmarshal([]byte(`{"LastContactThreshold":"1s","ServerStabilizationTime":2000000000,"MinQuorum":3}`), &back))
	a.LastContactThreshold, a.ServerStabilizationTime, a.MinQuorum = time.Second, 2*time.Second, 3
	require.Equal(t, a, back)
	require.Error(t, json.Unmarshal([]byte(`{"LastContactThreshold":"soon"}`), &back))
	require.Error(t, json.Unmarshal([]byte(`{"MaxTrailingLogs":-1}`), &back))
}
