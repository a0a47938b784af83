package drover_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// Nomad prints every field of an event, older ones that are zero too.
func TestTaskEventShowsEachFieldOfNomads(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]*drover.TaskEvent{
		"without": {Type: drover.TaskStarted, Time: 7},
		"with":    {Type: drover.TaskTerminated, TaskEventLegacy: &drover.TaskEventLegacy{ExitCode: 3}},
	} {
		text, err := json.Marshal(map[string]any{"Events": []*drover.TaskEvent{e}})
		require.NoError(t, err, name)
		var got struct{ Events []map[string]any }
		require.NoError(t, json.Unmarshal(text, &got), name)
		want := reflect.TypeFor[api.TaskEvent]()
		for i := range want.NumField() {
			require.Contains(t, got.Events[0], want.Field(i).Name, name)
		}
		require.Len(t, got.Events[0], want.NumField(), name)
		var back struct{ Events []api.TaskEvent }
		require.NoError(t, json.Unmarshal(text, &back), name)
		require.Equal(t, e.Type, back.Events[0].Type, name)
	}
	quiet := &drover.TaskEvent{Type: drover.TaskStarted}
	_, err := json.Marshal(quiet)
	require.NoError(t, err)
	require.Nil(t, quiet.TaskEventLegacy, "showing it costs no memory afterwards")
	var back drover.TaskEvent
	require.NoError(t, json.Unmarshal([]byte(`{"Type":"Terminated","ExitCode":3}`), &back))
	require.Empty(t, cmp.Diff(3, back.ExitCode))
}
