package references_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/references"
)

func TestIn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"": nil, "plain $X": nil, "${A}": {"A"},
		"a ${ A } b ${env[\"B\"]}": {"A", `env["B"]`}, "$${A} ${B}": {"B"}, "${A} ${": {"A"}, "${}": {""},
	} {
		require.Equal(t, want, references.In(text), text)
	}
	for ref, want := range map[string]string{"A": "A", `env["A"]`: "A", "node.class": "", "X:-1 2": ""} {
		require.Equal(t, want, references.Variable(ref), ref)
	}
	for ref, want := range map[string]string{"nodes.x": "nodes", "node.x": "", "A": "", "X:-1.0": "", "env.X": "", "a.": ""} {
		require.Equal(t, want, references.Foreign(ref), ref)
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	order, ring := references.Order(map[string]string{"A": "${B} ${C}", "B": "${C} ${NOMAD_DC}", "C": "c", "PATH": "/x:${PATH}"})
	require.Equal(t, []string{"C", "B", "A", "PATH"}, order)
	require.Empty(t, ring)
	order, ring = references.Order(map[string]string{"A": "${B}", "B": "${C}", "C": "${B}", "D": "d"})
	require.Len(t, order, 4)
	require.Equal(t, []string{"B", "C"}, ring)
}
