package rights

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/policy"
)

func compile(t testing.TB, texts ...string) *Rights {
	t.Helper()
	var all []*policy.Rules
	for _, text := range texts {
		r, err := policy.Parse(text)
		require.NoError(t, err, text)
		all = append(all, r)
	}
	return Compile(all...)
}

// TestTheExamplesOfTheReference are those with which Nomad's documents explain which rule holds.
func TestTheExamplesOfTheReference(t *testing.T) {
	t.Parallel()
	r := compile(t, `namespace "*-web" { policy = "deny" }
namespace "*" { policy = "write" }`)
	require.False(t, r.Namespace("production-web", policy.ReadJob))
	require.True(t, r.Namespace("production-api", policy.ReadJob))

	r = compile(t, `host_volume "*" { policy = "write" }
host_volume "prod-*" { policy = "deny" }
host_volume "prod-ca-certificates" { policy = "read" }`)
	require.True(t, r.HostVolume("data", policy.MountReadWrite))
	require.False(t, r.HostVolume("prod-db", policy.MountReadOnly))
	require.True(t, r.HostVolume("prod-ca-certificates", policy.MountReadOnly))
	require.False(t, r.HostVolume("prod-ca-certificates", policy.MountReadWrite))

	r = compile(t, `namespace "dev" { variables {
  path "project/*" { capabilities = ["write", "read", "destroy", "list"] }
  path "system/*"  { capabilities = ["read"] }
} }`)
	require.True(t, r.Variable("dev", "project/", policy.DestroyVariable), "a star stands for nothing, too")
	require.True(t, r.Variable("dev", "system/x", policy.ReadVariable) && r.Variable("dev", "system/x", policy.ListVariables))
	require.False(t, r.Variable("dev", "system", policy.ReadVariable), "all but the star is matched strictly")
	require.False(t, r.Variable("dev", "system/x", policy.WriteVariable))
	require.False(t, r.Namespace("dev", policy.ReadJob), "variables give nothing else")

	r = compile(t, "namespace \"default\" {\n policy = \"read\"\n capabilities = [\"submit-job\"]\n}")
	require.True(t, r.Namespace("default", policy.SubmitJob) && r.Namespace("default", policy.ListJobs))
	require.False(t, r.Namespace("default", policy.ReadLogs) || r.Namespace("default", policy.ReadFS))
}

// TestSeveralPolicies: they add up at a label, a denial of one wins there, and between labels the most specific one decides alone.
func TestSeveralPolicies(t *testing.T) {
	t.Parallel()
	r := compile(t, `namespace "a" { policy = "read" }
node { policy = "write" }
operator { policy = "read" }`, `namespace "a" { capabilities = ["submit-job"] }
node { policy = "deny" }
agent { policy = "read" }`, `namespace "b*" { policy = "write" }`, `namespace "b*" { capabilities = ["deny"] }
namespace "bc" { policy = "read" }`)
	require.True(t, r.Namespace("a", policy.ReadJob) && r.Namespace("a", policy.SubmitJob))
	require.False(t, r.Namespace("bx", policy.ReadJob), "denied")
	require.True(t, r.Namespace("bc", policy.ReadJob), "the exact rule decides alone")
	require.False(t, r.Namespace("bc", policy.SubmitJob))
	require.False(t, r.Namespace("c", policy.ReadJob))
	require.False(t, r.Part(policy.Node, policy.Read))
	require.True(t, r.Part(policy.Operator, policy.Read) && r.Part(policy.Fleet, policy.Read) && r.Part(policy.Agent, policy.Read))
	require.False(t, r.Part(policy.Operator, policy.Write) || r.Part(policy.Plugin, policy.List))
	require.True(t, r.Operator(policy.LicenseRead))
	require.False(t, r.Operator(policy.SnapshotSave))
	require.True(t, r.Namespace(AnyNamespace, policy.SubmitJob) && r.SeesNamespace(AnyNamespace))
	require.False(t, r.Namespace(AnyNamespace, policy.AllocExec), "only the denied rule has it")
	require.True(t, r.SeesNamespace("a") && r.SeesNamespace("bc"))
	require.False(t, r.SeesNamespace("bx") || r.SeesNamespace("zz"))
}

// TestADeniedNamespaceKeepsItsVariables, even where another policy gives all variables.
func TestADeniedNamespaceKeepsItsVariables(t *testing.T) {
	t.Parallel()
	r := compile(t, `namespace "*" { variables { path "*" { capabilities = ["read"] } } }`, `namespace "prod" { policy = "deny" }`)
	require.True(t, r.Variable("dev", "x", policy.ReadVariable) && r.AnyVariable("dev", policy.ListVariables))
	require.False(t, r.Variable("prod", "x", policy.ReadVariable) || r.AnyVariable("prod", policy.ListVariables))
	require.True(t, r.AnyVariable(AnyNamespace, policy.ListVariables))
	require.False(t, r.AnyVariable(AnyNamespace, policy.WriteVariable))
}

// TestExtremes: management may do everything, nil and nothing may do nothing.
func TestExtremes(t *testing.T) {
	t.Parallel()
	for want, all := range map[bool][]*Rights{true: {Management()}, false: {nil, {}, Compile()}} {
		for _, r := range all {
			require.Equal(t, want, r.Management())
			for _, c := range policy.Capabilities() {
				require.Equal(t, want, r.Namespace("x", c))
				require.Equal(t, want, r.Namespace(AnyNamespace, c))
			}
			require.Equal(t, want, r.SeesNamespace("x"))
			require.Equal(t, want, r.SeesNamespace(AnyNamespace))
			require.Equal(t, want, r.NodePool("x", policy.WritePool))
			require.Equal(t, want, r.HostVolume("x", policy.MountReadOnly))
			require.Equal(t, want, r.Part(policy.Fleet, policy.Write))
			require.Equal(t, want, r.Operator(policy.KeyringRead))
			if r == nil || r.variables != nil || want {
				require.Equal(t, want, r.Variable("x", "y", policy.ReadVariable))
				require.Equal(t, want, r.AnyVariable("x", policy.ReadVariable))
				require.Equal(t, want, r.AnyVariable(AnyNamespace, policy.ReadVariable))
			}
		}
	}
}

// questions asks about everything once.
func questions(r *Rights, namespace, path string) bool {
	return r.Namespace(namespace, policy.SubmitJob) || r.SeesNamespace(namespace) || r.Variable(namespace, path, policy.ReadVariable) ||
		r.NodePool(namespace, policy.WritePool) || r.HostVolume(namespace, policy.MountReadWrite) || r.Part(policy.Agent, policy.Write) ||
		r.Operator(policy.KeyringRead)
}

func TestDecisionsAllocateNothing(t *testing.T) {
	r := compile(t, `namespace "*-web" { capabilities = ["list-jobs"] }
namespace "a*c" { variables {
 path "p/*" { capabilities = ["list"] }
 path "p/q" { capabilities = ["list"] }
 path "*/q" { capabilities = ["list"] }
} }
namespace "b" { variables { path "p*q" { capabilities = ["list"] } } }`)
	for _, ns := range []string{"x-web", "abc", "b", "zzz"} {
		require.Zero(t, testing.AllocsPerRun(100, func() { questions(r, ns, "p/q") }), ns)
	}
}

// BenchmarkDecision asks for a namespace that the worst of n rules are of: globs in four forms.
func BenchmarkDecision(b *testing.B) {
	for _, n := range []int{3, 1000} {
		var all []*policy.Rules
		for i := range n {
			text := fmt.Sprintf([]string{
				`namespace "team-%d-*" { policy = "write" }`, `namespace "*-team-%d" { policy = "read" }`, `namespace "team-%d" { policy = "write" }`,
			}[i%3], i)
			r, err := policy.Parse(text + `
				namespace "s*x" { policy = "read" }
				namespace "v" { variables { path "p/*" { capabilities = ["read"] } } }`)
			require.NoError(b, err)
			all = append(all, r)
		}
		r := Compile(all...)
		for _, name := range []string{"team-2", "team-0-web", "nobody-knows-it", "some-other-x"} {
			b.Run(fmt.Sprintf("rules=%d/%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					r.Namespace(name, policy.AllocNodeExec)
				}
			})
		}
		b.Run(fmt.Sprintf("rules=%d/variable", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.Variable("v", "p/q/r", policy.ReadVariable)
			}
		})
	}
}
