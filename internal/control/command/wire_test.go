package command

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
)

// filled sets every field of v, and of what it points to, to something that is not its zero value.
func filled(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString(string(rune('a'+*n%26)) + "x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint32, reflect.Uint64, reflect.Float64,
		reflect.Uint16:
		v.Set(reflect.ValueOf(*n).Convert(v.Type()))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		filled(v.Index(0), n)
		filled(v.Index(1), n)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			filled(key, n)
			filled(value, n)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(int64(*n), 17).UTC()))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("codec") != "-" { // it is not written
				filled(v.Field(i), n)
			}
		}
	case reflect.Interface:
		v.Set(reflect.ValueOf("any"))
	case reflect.Array:
		for i := range v.Len() {
			filled(v.Index(i), n)
		}
	default:
		panic(v.Type())
	}
}

// TestNothingIsLost fails when a field is added to what is written by hand and not there.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	n := 0
	a := &drover.Allocation{}
	value := reflect.ValueOf(a).Elem()
	for i := range value.NumField() {
		switch value.Type().Field(i).Name {
		case "Job", "AllocatedResources", "Metrics":
		default:
			filled(value.Field(i), &n)
		}
	}
	data, err := AppendAllocation(nil, a)
	require.NoError(t, err)
	for _, in := range []*Interner{nil, NewInterner()} {
		back, err := DecodeAllocation(data, in)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(a, back))
	}
	u := &UpdateAllocs{}
	filled(reflect.ValueOf(&u.Nodes).Elem(), &n)
	filled(reflect.ValueOf(&u.Time).Elem(), &n)
	u.Evals = []*drover.Evaluation{{ID: "e"}}
	require.Empty(t, cmp.Diff(u, roundTrip(t, u)))
}

func TestRareValues(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]*drover.Allocation{
		"nothing":     {},
		"no state":    {TaskStates: map[string]*drover.TaskState{"t": nil}},
		"empty name":  {TaskStates: map[string]*drover.TaskState{"": {State: "dead"}}},
		"empty map":   {TaskStates: map[string]*drover.TaskState{}},
		"transitions": {DesiredTransition: drover.DesiredTransition{Migrate: new(false), NoShutdownDelay: new(true)}},
		"negative":    {CreateTime: -5, ModifyTime: -1 << 63},
		"unhealthy":   {DeploymentStatus: &drover.AllocDeploymentStatus{Healthy: new(false)}},
		"long": {TaskStates: map[string]*drover.TaskState{"t": {Events: []*drover.TaskEvent{
			{DisplayMessage: string(make([]byte, 20000)), Details: map[string]string{"": "", "k": string(make([]byte, 130))}},
			{Details: map[string]string{}},
		}, StartedAt: time.Date(1, 1, 1, 0, 0, 1, 999999999, time.UTC), FinishedAt: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}}},
	} {
		data, err := AppendAllocation(nil, a)
		require.NoError(t, err, name)
		back, err := DecodeAllocation(data, nil)
		require.NoError(t, err, name)
		require.Empty(t, cmp.Diff(a, back), name)
		for n := range data {
			_, _ = DecodeAllocation(data[:n], nil) // whatever it says, it must not panic
		}
	}
	back, err := DecodeAllocation([]byte{50 << 1, 1, 51<<1 | 1, 1, 7, 1<<1 | 1, 1, 'a'}, nil)
	require.NoError(t, err, "fields of a newer version are skipped")
	require.Equal(t, "a", back.ID)
}

func TestVersion1(t *testing.T) {
	t.Parallel()
	u := &UpdateAllocs{Time: 3, Nodes: []NodeUpdates{{NodeID: "n", Updates: []exchange.AllocUpdate{{ID: "a"}}}}}
	data, err := Marshal([]byte{1, byte(KindUpdateAllocs)}, u)
	require.NoError(t, err)
	back, err := Decode(data)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(u, back))
	plans := &wirePlans{Plans: []wirePlan{{Commit: PlanCommit{Placed: []*drover.Allocation{{ID: "a"}}}, Refs: []wireRef{{}}}}}
	data, err = Marshal([]byte{1, byte(KindApplyPlans)}, plans)
	require.NoError(t, err)
	back, err = Decode(data)
	require.NoError(t, err)
	require.Equal(t, "a", back.(*ApplyPlans).Plans[0].Placed[0].ID)
}

func TestInterner(t *testing.T) {
	t.Parallel()
	in := NewInterner()
	for i := range 2*maxInterned + 1 {
		in.of([]byte{byte(i), byte(i >> 8), byte(i >> 16)})
	}
	require.LessOrEqual(t, len(in.strings), maxInterned)
	in.of(make([]byte, maxInternedLength+1))
	require.LessOrEqual(t, len(in.strings), 1+2)
}
