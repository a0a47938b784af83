package config

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/config/plugin"
	"github.com/drover-project/drover/internal/optional"
)

// some draws a configuration with a value of each kind: text, number, switch, map, list, block, labelled block.
func some(t *rapid.T, name string) *Agent {
	text := rapid.SampledFrom([]string{"", "a", "b"})
	a := &Agent{Name: text.Draw(t, name+" name"), LogLevel: text.Draw(t, name+" level")}
	if rapid.Bool().Draw(t, name+" has ports") {
		a.Ports = &Ports{HTTP: rapid.IntRange(0, 2).Draw(t, name+" http"), RPC: rapid.IntRange(0, 2).Draw(t, name+" rpc")}
	}
	if rapid.Bool().Draw(t, name+" has a client") {
		a.Client = &Client{NodeClass: text.Draw(t, name+" class"), Servers: rapid.SliceOfN(text, 0, 2).Draw(t, name+" servers")}
		if len(a.Client.Servers) == 0 {
			a.Client.Servers = nil
		}
		if on := rapid.SampledFrom([]*bool{nil, new(true), new(false)}).Draw(t, name+" enabled"); on != nil {
			a.Client.Enabled = on
		}
		if rapid.Bool().Draw(t, name+" has meta") {
			a.Client.Meta = map[string]string{text.Draw(t, name+" key"): text.Draw(t, name+" value")}
		}
	}
	for _, driver := range []string{"docker", "sandbox"} {
		if rapid.Bool().Draw(t, name+" has "+driver) {
			a.Plugins = append(a.Plugins, &plugin.Block{Name: driver, Config: &plugin.Config{Endpoint: text.Draw(t, name+" "+driver)}})
		}
	}
	return a
}

// asText makes configurations comparable: plugins are known by their names, in any order.
func asText(t require.TestingT, a *Agent) string {
	plugins := map[string]*plugin.Block{}
	for _, p := range a.Plugins {
		plugins[p.Name] = p
	}
	rest := *a
	rest.Plugins, rest.Ignored = nil, nil
	text, err := json.Marshal([]any{&rest, plugins})
	require.NoError(t, err)
	return string(text)
}

// Files may be put together in any grouping, nothing laid on something changes nothing, and neither side is changed.
func TestMergeIsAssociative(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := some(t, "a"), some(t, "b"), some(t, "c")
		before := asText(t, a) + asText(t, b)
		require.Equal(t, asText(t, Merge(Merge(a, b), c)), asText(t, Merge(a, Merge(b, c))))
		require.Equal(t, asText(t, a), asText(t, Merge(a, &Agent{})))
		require.Equal(t, asText(t, a), asText(t, Merge(&Agent{}, a)))
		require.Equal(t, asText(t, a), asText(t, Merge(a, a)))
		require.Equal(t, before, asText(t, a)+asText(t, b))
	})
}

func TestMergeOfEachKind(t *testing.T) {
	t.Parallel()
	base := &Agent{
		LogLevel: "INFO", Ignored: []string{"b", "a"}, Client: &Client{
			Enabled: new(true), NodeClass: "big", Servers: []string{"a", "b"}, Meta: map[string]string{"x": "1", "y": "1"},
		},
		Plugins: []*plugin.Block{{Name: "docker", Config: &plugin.Config{Endpoint: "one", NoCgroups: new(true)}}, {Name: "sandbox"}},
	}
	over := &Agent{
		Ignored: []string{"a", "c"}, Client: &Client{
			Enabled: new(false), Servers: []string{"c"}, Meta: map[string]string{"y": "2", "z": "2"},
		},
		Plugins: []*plugin.Block{{Name: "docker", Config: &plugin.Config{Endpoint: "two"}}},
	}
	got := Merge(base, over)
	require.Equal(t, "info", got.LogLevel, "levels are known in small letters")
	require.False(t, optional.Value(got.Client.Enabled), "a later file can say false")
	require.Equal(t, "big", got.Client.NodeClass, "what nobody says again stays")
	require.Equal(t, []string{"c"}, got.Client.Servers, "lists are replaced as a whole")
	require.Equal(t, map[string]string{"x": "1", "y": "2", "z": "2"}, got.Client.Meta)
	require.Equal(t, []string{"a", "b", "c"}, got.Ignored, "each once")
	require.Len(t, got.Plugins, 2)
	require.Equal(t, "two", got.Driver("docker").Endpoint)
	require.Nil(t, got.Driver("docker").NoCgroups, "a labelled block is replaced as a whole")
}
