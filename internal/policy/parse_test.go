package policy

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

const example = `
# Comments are fine.
namespace "foo" {
  policy       = "write"
  capabilities = ["alloc-node-exec"]
  variables {
    path "project/*" { capabilities = ["read", "write"] }
    path "system/x"  { capabilities = ["deny"] }
  }
}
namespace "*" { policy = "read" }
namespace "ci-*" { capabilities = ["submit-job", "claim-runner"] }
node_pool "prod" { policy = "read" }
node_pool "dev-*" { capabilities = ["write"] }
host_volume "*" { policy = "write" }
host_volume "prod-ca" { capabilities = ["mount-readonly"] }
node { policy = "read" }
agent { policy = "write" }
operator {
  policy       = "read"
  capabilities = ["snapshot-save"]
}
quota { policy = "deny" }
plugin { policy = "list" }
`

const exampleJSON = `{
  "namespace": {
    "foo": {"policy": "write", "capabilities": ["alloc-node-exec"], "variables": {"path": {
      "project/*": {"capabilities": ["read", "write"]}, "system/x": {"capabilities": ["deny"]}}}},
    "*": {"policy": "read"},
    "ci-*": [{"capabilities": ["submit-job", "claim-runner"]}]
  },
  "node_pool": [{"prod": {"policy": "read"}}, {"dev-*": {"capabilities": ["write"]}}],
  "host_volume": {"*": {"policy": "write"}, "prod-ca": {"capabilities": ["mount-readonly"]}},
  "node": {"policy": "read"}, "agent": {"policy": "write"}, "quota": {"policy": "deny"}, "plugin": {"policy": "list"},
  "operator": {"policy": "read", "capabilities": ["snapshot-save"]}
}`

// TestParse: what a policy says, with all that its words stand for; JSON says the same.
func TestParse(t *testing.T) {
	t.Parallel()
	r, err := Parse(example)
	require.NoError(t, err)
	require.Len(t, r.Namespaces, 3)
	foo := r.Namespaces["foo"]
	for _, c := range []Capability{
		SubmitJob, ReadLogs, AllocExec, RegisterJob, ScaleJob, ClaimRunner, Execute, WriteEnvironment, AllocNodeExec,
	} {
		require.True(t, foo.Capabilities.Has(c), "%s", c)
	}
	require.False(t, foo.Capabilities.Has(SentinelOverride), "write gives no such thing")
	require.Equal(t, Of(ListVariables, ReadVariable, WriteVariable), foo.Variables["project/*"])
	require.True(t, foo.Variables["system/x"].Denies())
	all := r.Namespaces["*"].Capabilities
	require.True(t, all.Has(ReadJob) && all.Has(ListJobs) && all.Has(ParseJob) && all.Has(ReadRunner))
	require.False(t, all.Has(ReadLogs) || all.Has(SubmitJob) || all.Has(ClaimRunner) || all.Has(Execute))
	ci := r.Namespaces["ci-*"].Capabilities
	require.True(t, ci.Has(PlanJob) && ci.Has(ClaimRunner) && ci.Has(ReadRunner))
	require.False(t, ci.Has(ListJobs) || ci.Has(Execute))
	require.Equal(t, Of(ReadPool), r.NodePools["prod"])
	require.Equal(t, Of(ReadPool, WritePool), r.NodePools["dev-*"])
	require.Equal(t, Of(MountReadOnly, MountReadWrite), r.HostVolumes["*"])
	require.Equal(t, [Parts]Level{Agent: Write, Node: Read, Operator: Read, Quota: Deny, Plugin: List, Fleet: Read}, r.Parts)
	require.Equal(t, Of(SnapshotSave, LicenseRead), r.Operator)

	again, err := Parse(exampleJSON)
	require.NoError(t, err)
	require.Equal(t, r, again)
}

// TestParseShorthands: a namespace without a name is the default one, labels meet, and the fleet's own level comes before the operator's.
func TestParseShorthands(t *testing.T) {
	t.Parallel()
	r, err := Parse(`namespace { policy = "read" }`)
	require.NoError(t, err)
	require.True(t, r.Namespaces["default"].Capabilities.Has(ReadJob))

	r, err = Parse(`namespace "a**b" { policy = "scale" }
namespace "a*b" { capabilities = ["read-job"] }
operator { policy = "write" }
fleet { policy = "deny" }`)
	require.NoError(t, err)
	require.Len(t, r.Namespaces, 1)
	set := r.Namespaces["a*b"].Capabilities
	require.True(t, set.Has(ReadJob) && set.Has(ScaleJob))
	require.Equal(t, Deny, r.Parts[Fleet])
	require.Equal(t, Write, r.Parts[Operator])

	r, err = Parse(`operator { policy = "write" capabilities = ["deny"] }`)
	require.NoError(t, err)
	require.Equal(t, Deny, r.Parts[Operator])
	require.True(t, r.Operator.Denies())
}

// TestParseTheOlderDialect: Nomad reads policies with HCL 1, so people have written what HCL 2 refuses.
func TestParseTheOlderDialect(t *testing.T) {
	t.Parallel()
	want, err := Parse("namespace \"a\" {\n  policy = \"read\"\n  capabilities = [\"submit-job\"]\n}\nnode {\n  policy = \"read\"\n}")
	require.NoError(t, err)
	for _, same := range []string{
		`namespace "a" { policy = "read" capabilities = ["submit-job"] } node { policy = "read" }`,
		`namespace "a" { policy = "read", capabilities = ["submit-job",], } node = { policy = "read" }`,
		`namespace a { "policy" = "read" "capabilities" = ["submit-job"] } "node" { policy = "read" }`,
		"namespace = { a = { policy = \"read\" } } // one\n" +
			"namespace \"a\" { capabilities = [\"submit-job\"] } /* two */ node { policy = \"re\\u0061d\" }",
		"node { policy = \"read\" }\nnamespace \"a\" {\n capabilities = [ # these\n \"submit-job\" ]\n policy = \"read\"\n}",
	} {
		got, err := Parse(same)
		require.NoError(t, err, same)
		require.Equal(t, want, got, same)
	}
	r, err := Parse(`namespace { variables { path "x" { capabilities = ["read"] } } }`)
	require.NoError(t, err)
	require.Contains(t, r.Namespaces, "default")
	_, err = Parse("namespace \"a\" {\n polcy = \"read\"\n policy = \"rite\"\n}\nnodes {}")
	require.ErrorContains(t, err, "line 2, column 2: ")
	require.ErrorContains(t, err, "\nline 3, column 11: ", "all problems are told")
	require.ErrorContains(t, err, "\nline 5, column 1: ")
}

// TestParseRefuses: each mistake is told with its line and column.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"", "line 1, column 1: the policy has no rules"},
		{"namespace \"a\" {\n  polcy = \"read\"\n}", `line 2, column 3: unknown key "polcy" in a namespace rule (did you mean policy?)`},
		{"namspace \"a\" { policy = \"read\" }", `line 1, column 1: unknown rule "namspace" (did you mean namespace?)`},
		{`nodes { policy = "read" }`, `unknown rule "nodes" (did you mean node`},
		{`xx { policy = "read" }`, `unknown rule "xx": write one of agent, fleet, host_volume, namespace`},
		{`namespace "a" { policy = "rite" }`, `line 1, column 26: no such policy here: "rite"`},
		{
			"namespace \"a\" {\n capabilities = [\"read-job\", \"read-jobs\"]\n}",
			`line 2, column 30: no such capability here: "read-jobs" (did you mean read-job?)`,
		},
		{`namespace "a" { capabilities = "read-job" }`, "line 1, column 32: capabilities is a list of texts"},
		{`namespace "a" { capabilities = [7] }`, "line 1, column 33: each of the capabilities is a text in quotes, got 7"},
		{`namespace "a" { policy = 7 }`, "policy is a text in quotes, got 7"},
		{`namespace "a" { policy = null }`, "policy is a text in quotes, got null"},
		{`namespace "a" { policy = read }`, "line 1, column 26: policy is a text in quotes, got read"},
		{`namespace "a" { policy = upper("read") }`, `line 1, column 31: "(" is not expected here`},
		{"node { /* \n policy = \"read\" }", `line 1, column 8: a comment needs its "*/"`},
		{"node {\n policy = \"re\nad\" }", "line 2, column 11: the text needs its"},
		{"node { policy = \"\\q\" }", "line 1, column 17: the text has an escape that is none"},
		{"node { policy = \"\xff\" }", "line 1, column 17: the text is not UTF-8"},
		{"# é\nnode { é }", `line 2, column 8: "é" is not expected here`},
		{"node { policy = <<E\nread\nE\n}", `line 1, column 17: "<" is not expected here`},
		{`node { policy = }`, `line 1, column 17: a text in quotes or a list of them is expected here, got "}"`},
		{`}`, `line 1, column 1: the name of a rule or of a setting is expected here, got "}"`},
		{`namespace "a" { policy = "${x}" }`, "line 1, column 26: rules have no templates"},
		{`namespace "a" { policy = "read" policy = "w" }`, `line 1, column 33: "policy" is given twice`},
		{`namespace "a" { }`, "line 1, column 11: the namespace rule says nothing"},
		{`namespace { }`, "the namespace rule needs a name"},
		{`namespace "a" { policy = "read"`, `line 1, column 32: a block needs its "}", got the end of the rules`},
		{`namespace "a" { policy = "read }`, "line 1"},
		{`namespace "a" { capabilities = ["deny" "x"] }`, `"," or "]" is expected`},
		{`namespace "a_b" { policy = "read" }`, `line 1, column 11: invalid namespace name "a_b"`},
		{`namespace "a" "b" { policy = "read" }`, `unknown key "b" in a namespace rule`},
		{`namespace = "a"`, `line 1, column 13: "namespace" is a block`},
		{`namespace "a" { variables { } }`, "the variables block has no path"},
		{`namespace "a" { variables { paths "x" { capabilities = ["read"] } } }`, `unknown key "paths" in a variables block`},
		{"namespace \"a\" {\n variables {\n  path \"/x\" { capabilities = [\"read\"] }\n }\n}", `line 3, column 8: invalid variable path "/x"`},
		{`namespace "a" { variables { path "" { capabilities = ["read"] } } }`, "a path has 1 to 256 bytes"},
		{`namespace "a" { variables { path "x" { capabilities = ["submit-job"] } } }`, "no such capability here"},
		{`namespace "a" { variables { path "x" { policy = "read" } } }`, `unknown key "policy" in a path rule`},
		{
			`namespace "a" { variables { path "x" { capabilities = ["read"] } } variables { path "y" { capabilities = ["read"] } } }`,
			"given twice",
		},
		{`node { policy = "list" }`, `no such policy here: "list"`},
		{`node { capabilities = ["read"] }`, `unknown key "capabilities" in a node rule`},
		{`node { }`, "the node rule says nothing"},
		{"node { policy = \"read\" }\nnode { policy = \"read\" }", "line 2, column 1: a policy has one node rule at most"},
		{`operator { capabilities = ["keyring-eat"] }`, "did you mean keyring-read?"},
		{`node_pool "a/b" { policy = "read" }`, `invalid node_pool name "a/b"`},
		{`host_volume "v" { policy = "scale" }`, `no such policy here: "scale"`},
		{`node_pool "p" { capabilities = [] }`, "the node_pool rule says nothing"},
		{`{"namespace": {"a": {"polcy": "read"}}}`, `line 1, column 22: unknown key "polcy"`},
		{"{\"namespace\": {\"a\": {\n \"policy\": \"rite\"}}}", `line 2, column 12: no such policy here: "rite"`},
		{`{"namespace": {"a": {"policy": "read"}}`, "line 1, column 40: a bracket or a text is not closed"},
		{`{"node": {"policy": "read"}} {}`, "something stands behind the end"},
		{`{"node": {"policy": ["read"]}}`, "policy is a text in quotes, got a list"},
		{`{"node": [1]}`, `"node" is a block`},
		{`{"nodes": 1, node}`, "line 1"},
		{strings.Repeat("a {", 50), "levels of nesting"},
		{"a = " + strings.Repeat("[", 50), "levels of nesting"},
		{"a " + strings.Repeat("b ", 50), "levels of nesting"},
		{strings.Repeat(`{"a":`, 50), "levels of nesting"},
		{strings.Repeat("x", maxText+1), "bytes: make them"},
		{strings.Repeat("node_pool \"a\" { policy = \"read\" }\n", maxRules+1), "line 4097, column 11: the policy has more than 4096 rules"},
	} {
		text, want := c[0], c[1]
		_, err := Parse(text)
		require.Error(t, err, "%.60q", text)
		require.Equal(t, drover.Invalid, drover.CodeOf(err))
		require.ErrorContains(t, err, want, "%.60q", text)
	}
}

// TestWords: every capability has a word of its own, and the coarse policies give no capability that has to be named.
func TestWords(t *testing.T) {
	t.Parallel()
	require.Len(t, capabilityNames, int(capabilities))
	require.Less(t, int(capabilities), 63, "one bit is the denial's")
	seen := map[string]bool{}
	for _, c := range Capabilities() {
		require.False(t, seen[c.String()], "%s", c)
		seen[c.String()] = true
		found, ok := capabilityNames.find(c.String())
		require.True(t, ok && found == c)
	}
	for _, c := range []Capability{AllocNodeExec, SentinelOverride, CSIRegisterPlugin} {
		require.False(t, complete(writesNamespace).Has(c), "%s has to be given by name", c)
	}
	for c, set := range implied {
		require.Equal(t, complete(Of(c)), complete(complete(Of(c))), "%s: what it implies is complete", c)
		require.False(t, set.Denies())
	}
	require.Equal(t, []string{"unknown", "read-logs", "list", "write", "mount-readonly", "keyring-read", "fleet", "deny"}, []string{
		Capability(200).String(), ReadLogs.String(), ListVariables.String(), WritePool.String(), MountReadOnly.String(), KeyringRead.String(),
		Fleet.String(), Deny.String(),
	})
}

func TestLevels(t *testing.T) {
	t.Parallel()
	require.True(t, Write.Allows(Read) && Read.Allows(List) && Read.Allows(Read))
	require.False(t, List.Allows(Read) || Read.Allows(Write) || Deny.Allows(List) || Deny.Allows(Write) || None.Allows(List))
}

// FuzzParse: any text is read or refused, within bounds, and what is read says the same when it is read again.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		example, exampleJSON, "", "{", `namespace "a" {`, `namespace { policy = "read" }`, `{"namespace":[{"a":[{}]}]}`, "a = <<E\nx\nE\n",
		`namespace "a" { capabilities = [null] }`, `{"node":null}`, `{"namespace":"x"}`, `{"namespace":{"a":{"variables":[[]]}}}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Parse(text)
		if err != nil {
			require.Nil(t, r)
			require.Equal(t, drover.Invalid, drover.CodeOf(err))
			require.Contains(t, err.Error(), "failed to parse policy")
			return
		}
		again, err := Parse(text)
		require.NoError(t, err)
		require.Equal(t, r, again)
		for label := range r.Namespaces {
			require.NotContains(t, label, "**")
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for name, text := range map[string]string{"small": `namespace "team-1" { policy = "write" }`, "example": example} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
