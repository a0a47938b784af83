package jobs

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/httpapi"
)

// fill gives everything in v a value, lists and maps one element, as deep as types nest in themselves twice.
func fill(v reflect.Value, within map[reflect.Type]int) {
	switch v.Kind() {
	case reflect.Pointer:
		if within[v.Type()] > 1 {
			return
		}
		within[v.Type()]++
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), within)
		within[v.Type()]--
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), within)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), within)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, within)
		fill(value, within)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Bool:
		v.SetBool(true)
	default: // floats are 0, and what is any is nil
	}
}

// TestAllThatNomadsClientSendsIsKnown: nobody who registers, plans or validates with it hears of unknown fields.
func TestAllThatNomadsClientSendsIsKnown(t *testing.T) {
	t.Parallel()
	for _, sent := range []any{&api.JobRegisterRequest{}, &api.JobPlanRequest{}, &api.JobValidateRequest{}} {
		fill(reflect.ValueOf(sent).Elem(), map[reflect.Type]int{})
		text, err := json.Marshal(sent)
		require.NoError(t, err)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "/", bytes.NewReader(text))
		require.NoError(t, err)
		var b jobBody
		unknown, err := httpapi.DecodeKnownJSON(r, &b)
		require.NoError(t, err)
		require.Empty(t, unknown, "%T", sent)
		require.Equal(t, "x", b.Job.TaskGroups[0].Tasks[0].Name)
	}
}

// TestAnUnknownFieldIsTold, beside what is warned of otherwise; the rest of the body counts.
func TestAnUnknownFieldIsTold(t *testing.T) {
	t.Parallel()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "/", bytes.NewReader([]byte(
		`{"Job": {"ID": "a", "Frobnicate": 1, "TaskGroups": [{"Name": "g", "Migrate": {"MinHealthyTime": "10s"}}]}, "Diff": true}`)))
	require.NoError(t, err)
	var b jobBody
	b.unknown, err = httpapi.DecodeKnownJSON(r, &b)
	require.NoError(t, err)
	require.Equal(t, "g", b.Job.TaskGroups[0].Name)
	require.True(t, b.Diff)
	require.Equal(t, `"Frobnicate" has no effect: there is no such field; others may be unknown, too`, b.warned(""))
	require.Equal(t, `one; "Frobnicate" has no effect: there is no such field; others may be unknown, too`, b.warned("one"))
	require.Equal(t, "one", (&jobBody{}).warned("one"))
	for body, want := range map[string]string{
		"": "no body", " ": "no body", `{"Job": 1}`: "Job: got a JSON number", "{} x": "behind its JSON value",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "/", bytes.NewReader([]byte(body)))
		require.NoError(t, err)
		_, err = httpapi.DecodeKnownJSON(r, &jobBody{})
		require.ErrorContains(t, err, want, body)
	}
}
