package tenants

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// indexes are what only servers set.
var indexes = []string{"CreateIndex", "ModifyIndex"}

// complete fails for a field that the file did not set, however deep it is.
func complete(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Pointer:
		require.False(t, v.IsNil(), "%s was not read: add it to the file's struct, and to this test", path)
		complete(t, path, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; !slices.Contains(indexes, name) {
				complete(t, path+"."+name, v.Field(i))
			}
		}
	default:
		require.False(t, v.IsZero(), "%s was not read: add it to the file's struct, and to this test", path)
	}
}

// Each field of a namespace is read from each kind of file, and so is each of an admission rule.
func TestFilesHaveEachField(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"HCL": `name = "n"
description = "d"
quota = "q"
meta { a = "b" }
capabilities {
  enabled_task_drivers = ["a"]
  disabled_task_drivers = ["b"]
  enabled_network_modes = ["c"]
  disabled_network_modes = ["d"]
}
node_pool_config {
  default = "p"
  allowed = ["a"]
  denied = ["b"]
}
images {
  registries = ["ghcr.io"]
  pin = "require"
  signed_by = ["key"]
}
required_extra_claims { team = "blue ${job.id}" }
optional_extra_claims { pool = "${node.pool}" }`,
		"JSON": `{"name": "n", "description": "d", "quota": "q", "meta": {"a": "b"}, "capabilities": {"enabled_task_drivers": ["a"],
"disabled_task_drivers": ["b"], "enabled_network_modes": ["c"], "disabled_network_modes": ["d"]},
"node_pool_config": {"default": "p", "allowed": ["a"], "denied": ["b"]},
"images": {"registries": ["ghcr.io"], "pin": "require", "signed_by": ["key"]},
"required_extra_claims": {"team": "blue ${job.id}"}, "optional_extra_claims": {"pool": "${node.pool}"}}`,
	} {
		n, err := readNamespace([]byte(text), name)
		require.NoError(t, err, name)
		complete(t, name+": Namespace", reflect.ValueOf(n))
		require.Equal(t, "blue ${job.id}", n.RequiredExtraClaims["team"], name)
		inspected, err := json.Marshal(n)
		require.NoError(t, err)
		again, err := readNamespace(inspected, "inspected")
		require.NoError(t, err)
		require.Equal(t, n, again, "what 'namespace inspect' prints")
	}
	const rule = `rule "r" {
  description = "d"
  namespaces = ["n"]
  level = "warn"
  when = "Driver == docker"
  max = { CPU = 1 }
  message = "m"
}`
	list, err := readRules([]byte(rule), "HCL")
	require.NoError(t, err)
	complete(t, "AdmissionRule", reflect.ValueOf(list[0]))
	printed, err := json.Marshal(list[0])
	require.NoError(t, err)
	again, err := readRules(printed, "printed")
	require.NoError(t, err)
	require.Equal(t, []*drover.AdmissionRule{list[0]}, again)
}
