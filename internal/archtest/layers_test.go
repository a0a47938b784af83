package archtest

import (
	"fmt"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// layer is a row of the table in ARCHITECTURE.md. A package imports packages of lower layers, and of its own layer those
// of its plane or room. A name without "drover" before it is below internal; "/*" is a folder.
type layer struct {
	name     string
	packages string
	rule     string
}

// layers is the whole house, the lowest first.
var layers = []layer{ // a table
	{
		"vocabulary",
		"drover drover/acl drover/cluster drover/constraint drover/device drover/execution drover/fleet drover/jobdiff drover/network " +
			"drover/secrets drover/service drover/tenancy drover/usage drover/volume drover/workload cron exchange lazyregexp lifecycle optional " +
			"references tables validation",
		"nouns and the seam between node and control: no I/O",
	},
	{
		"foundation",
		"admission aesgcm appendlog audit clock deepcopy evaluator flock forked id invariant jsontext logsink logtimes minheap netguard " +
			"policy quota registration rights claims registry rotation servicecheck signature stack statsd sysmon takeover taskenv telemetry " +
			"tenant tlspin unheeded version wake binding",
		"what everybody may use",
	},
	{
		"seams",
		"control/command node/driver fleet/provider",
		"what planes speak to the world through: data and interfaces",
	},
	{
		"deciders",
		"control/scheduler control/scheduler/* control/trigger control/progress control/evalbroker control/leases control/insight " +
			"node/taskmachine node/pace exec/pool exec/listing exec/timeline exec/journal fleet/learned fleet/scaler",
		"values: no store, context, goroutine or I/O",
	},
	{
		"state",
		"control/store control/sealed control/quotas control/tokens control/volumes control/machines control/snapshot control/fsm " +
			"control/eventstream exec/environment exec/ledger node/localstate node/allocdir node/rendering node/diskuse fleet/ledger control/logins",
		"what is kept: go-memdb, tidwall/btree, bbolt, files",
	},
	{
		"effects",
		"control/raftlog control/autopilot control/idp control/members node/supervisor node/supervisor/* node/cgroup node/image " +
			"node/stats node/artifact node/gitfetch node/program node/device node/fingerprint node/examine node/cloud node/machine node/cni " +
			"node/groupnet node/egress node/driver/* " +
			"fleet/provider/* fleet/bootstrap exec/webhook link link/* peer peercall control/keyring/transit control/keyring/kms",
		"each with its SDK or its part of the kernel",
	},
	{
		"loops",
		"control/access control/archive control/intake control/keyring control/planner control/assignment control/leader " +
			"control/variables control/lookups control/cluster control/federation node/agent node/refill node/allocrunner node/checks " +
			"node/taskrunner node/hook node/volumes " +
			"node/trial node/doctor exec/runner exec/executor exec/turns exec/nomadbackend fleet/pool fleet/demand fleet/office fleet/gate " +
			"fleet/keeper fleet/meters fleet/check control/identity node/identities node/lookups node/taskapi",
		"they own goroutines; effects come through interfaces that they declare",
	},
	{
		"surfaces",
		"httpapi httpapi/* nameserver cli cli/* config config/* drover/jobspec drover/client drover/client/*",
		"they translate: of the planes they see interfaces that they declare",
	},
	{
		"roots",
		"server server/* sim sim/* fleet/simulator fleet/whatif bench bench/* docgen drover/cmd/*",
		"they join the planes",
	},
	{
		"tests",
		"archtest e2e e2e/* *test",
		"helpers of tests, and tests of the whole",
	},
}

// layerOf returns the row of a package; -1 if it has none.
func layerOf(p string) int {
	best, longest := -1, -1
	for i, l := range layers {
		for pattern := range strings.FieldsSeq(l.packages) {
			if n := matched(pattern, p); n > longest {
				best, longest = i, n
			}
		}
	}
	return best
}

// matched returns how much of p the pattern names; -1 if it does not match.
func matched(pattern, p string) int {
	if suffix, ok := strings.CutPrefix(pattern, "*"); ok {
		if strings.HasSuffix(p, suffix) && strings.HasPrefix(p, "drover/internal/") {
			return len(p)
		}
		return -1
	}
	full := "drover/internal/" + pattern
	if pattern == "drover" || strings.HasPrefix(pattern, "drover/") {
		full = pattern
	}
	if folder, ok := strings.CutSuffix(full, "*"); ok {
		if strings.HasPrefix(p, folder) {
			return len(folder)
		}
		return -1
	}
	if p == full {
		return len(full)
	}
	return -1
}

// room is what packages of one layer share that may import each other: their plane, else their first folder.
func room(p string) string {
	if pl := plane(p); pl != "" {
		return pl
	}
	return strings.SplitN(strings.TrimPrefix(p, "drover/internal/"), "/", 2)[0]
}

func TestLayersFromTheTable(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		mine := layerOf(p.ImportPath)
		require.GreaterOrEqual(t, mine, 0, "%s stands in no layer: give it a place in layers_test.go", p.ImportPath)
		for _, imp := range p.Imports {
			if !strings.HasPrefix(imp, "drover") {
				continue
			}
			theirs := layerOf(imp)
			beside := theirs == mine && (room(p.ImportPath) == room(imp) || layers[mine].name == "vocabulary" || layers[mine].name == "foundation" ||
				layers[mine].name == "roots" || layers[mine].name == "tests" || uses(p.ImportPath, imp))
			if theirs > mine || theirs == mine && !beside {
				t.Errorf("%s (%s) imports %s (%s): %s", p.ImportPath, layers[mine].name, imp, layers[theirs].name, layers[mine].rule)
			}
		}
	}
}

// uses lists the arrows between rooms of one layer.
func uses(from, to string) bool {
	speaks := room(from) == "cli" || room(from) == "client"
	return speaks && (strings.HasPrefix(to, "drover/client") || to == "drover/jobspec" || room(to) == "config")
}

// TestTheTableStandsInTheArchitecture compares the table with ARCHITECTURE.md's.
func TestTheTableStandsInTheArchitecture(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(path.Join("..", "..", "ARCHITECTURE.md"))
	require.NoError(t, err)
	var want strings.Builder
	for i, l := range layers {
		var names []string
		for n := range strings.FieldsSeq(l.packages) {
			names = append(names, "`"+n+"`")
		}
		fmt.Fprintf(&want, "| %d %s | %s | %s |\n", i, l.name, strings.Join(names, " "), l.rule)
	}
	require.Contains(t, string(text), want.String(), "ARCHITECTURE.md's table of layers must be:\n%s", want.String())
}
