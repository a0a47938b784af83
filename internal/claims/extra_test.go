package claims

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/tenancy"
	"github.com/drover-project/drover/workload"
)

// TestExtra: a token has what its namespace requires and what its identity names of the rest, with the place where its task runs.
func TestExtra(t *testing.T) {
	t.Parallel()
	ns := &tenancy.Namespace{
		Name:                "ns",
		RequiredExtraClaims: map[string]string{"team": "blue", "where": "${job.region}:${job.namespace}:${ job.id }:$${job.id}:${none}:$${"},
		OptionalExtraClaims: map[string]string{
			"node": "${node.pool}/${node.class}/${node.datacenter}/${node.id}", "task": "${group.name}.${task.name}",
		},
	}
	a := alloc()
	a.NodeID = "n1"
	p := Place{Region: "global", Task: "web", Alloc: a, Node: &drover.Node{NodePool: "gpu", NodeClass: "big", Datacenter: "dc1"}}
	want := map[string]string{"team": "blue", "where": "global:ns:job:${job.id}:${none}:${"}
	require.Equal(t, want, Extra(ns, &workload.Identity{}, p))
	want["task"] = "g.web"
	require.Equal(t, want, Extra(ns, &workload.Identity{ExtraClaims: []string{"task", "team", "gone"}}, p))
	want["node"] = "gpu/big/dc1/n1"
	require.Equal(t, want, Extra(ns, &workload.Identity{ExtraClaims: []string{"task", "node"}}, p))
	p.Node = nil
	require.Equal(t, "///n1", Extra(ns, &workload.Identity{ExtraClaims: []string{"node"}}, p)["node"])
	require.Empty(t, Extra(nil, &workload.Identity{ExtraClaims: []string{"node"}}, p))
	require.Empty(t, Extra(&tenancy.Namespace{}, &workload.Identity{}, p))
}

func TestCheckExtra(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range MaxExtra + 1 {
		many[strings.Repeat("a", i+1)] = "x"
	}
	for want, ns := range map[string]*tenancy.Namespace{
		"": {RequiredExtraClaims: map[string]string{"https://a.example/team": "$${x} ${job.id}"}},
		`RequiredExtraClaims: claim "sub" is the standard's or the cluster's own`: {RequiredExtraClaims: map[string]string{"sub": "root"}},
		`OptionalExtraClaims: claim "nomad_job_id" is the standard's`:             {OptionalExtraClaims: map[string]string{"nomad_job_id": "j"}},
		`OptionalExtraClaims: claim "a" is required already`: {
			RequiredExtraClaims: map[string]string{"a": "1"}, OptionalExtraClaims: map[string]string{"a": "2"},
		},
		`claim "" must have 1 to 128 bytes`:       {OptionalExtraClaims: map[string]string{"": "2"}},
		`claim "a\nb" must have 1 to 128 bytes`:   {OptionalExtraClaims: map[string]string{"a\nb": "2"}},
		`claim "a" has 1025 bytes`:                {OptionalExtraClaims: map[string]string{"a": strings.Repeat("x", 1025)}},
		`claim "a" has ${job.name}: known are al`: {OptionalExtraClaims: map[string]string{"a": "${job.id}${job.name}"}},
		`33 extra claims, the limit is 32`:        {OptionalExtraClaims: maps.Clone(many)},
	} {
		err := CheckExtra(ns)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.Equal(t, drover.Invalid, drover.CodeOf(err), want)
		require.ErrorContains(t, err, want)
	}
}
