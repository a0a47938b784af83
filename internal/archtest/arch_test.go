package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type pkg struct {
	ImportPath  string
	Doc         string
	Imports     []string
	GoFiles     []string
	TestGoFiles []string
	Name        string
}

// packages lists the module's, under the short paths that the rules name: "drover/…", wherever the module lives.
func packages(t *testing.T) []pkg {
	t.Helper()
	var list []pkg
	for dec := json.NewDecoder(strings.NewReader(goList(t, "-json=ImportPath,Doc,Imports,GoFiles,TestGoFiles,Name", module(t)+"/..."))); ; {
		var p pkg
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return list
		}
		require.NoError(t, err)
		p.ImportPath = short(t, p.ImportPath)
		for i, imp := range p.Imports {
			p.Imports[i] = short(t, imp)
		}
		list = append(list, p)
	}
}

func short(t *testing.T, path string) string {
	t.Helper()
	rest, ours := strings.CutPrefix(path, module(t))
	if ours && (rest == "" || rest[0] == '/') {
		return "drover" + rest
	}
	return path
}

func module(t *testing.T) string {
	t.Helper()
	info, ok := debug.ReadBuildInfo()
	require.True(t, ok)
	return info.Main.Path
}

func goList(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
	require.NoError(t, err)
	return string(out)
}

func plane(path string) string {
	for _, p := range []string{"control", "node", "exec", "fleet"} {
		if strings.HasPrefix(path, "drover/internal/"+p+"/") {
			return p
		}
	}
	return ""
}

func TestPlanesNeverImportEachOther(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		for _, imp := range p.Imports {
			mine, theirs := plane(p.ImportPath), plane(imp)
			if mine != "" && theirs != "" && mine != theirs {
				t.Errorf("%s imports %s: planes meet in root nouns and in interfaces which the consumer declares; internal/server joins them",
					p.ImportPath, imp)
			}
		}
	}
}

// allowed lists, for a package prefix, the drover packages beyond the foundation that it may import, and why.
var allowed = []struct {
	prefix string
	may    []string
	reason string
}{
	{
		"drover/internal/control/scheduler",
		[]string{"drover/internal/control/scheduler"},
		"the scheduler is pure: it reads an interface, never the store",
	},
	{"drover/internal/node/taskmachine", nil, "a task's life is a pure function"},
	{"drover/internal/control/command", nil, "commands are data"},
	{"drover/internal/control/evalbroker", nil, "the broker is a value; time is passed in"},
	{"drover/internal/link", []string{"drover/internal/link"}, "link carries root interfaces, it knows no plane"},
	{"drover/client", nil, "users import client: it may need the root package only"},
	{"drover/jobspec", nil, "jobspec makes root nouns"},
	{"drover/internal/httpapi", []string{"drover/internal/httpapi"}, "faces translate: they declare the interfaces that they need"},
	{
		"drover/internal/cli",
		[]string{"drover/client", "drover/jobspec", "drover/internal/cli", "drover/internal/config"},
		"the command line uses the API as everybody does",
	},
	{"drover/internal/config", []string{"drover/internal/config"}, "configuration is data"},
	{"drover/cmd/drover-init", []string{"drover/internal/node/supervisor/"}, "the supervisor is a tiny program of its own"},
}

func TestLayers(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		rule := -1
		for i, a := range allowed {
			if strings.HasPrefix(p.ImportPath, a.prefix) {
				rule = i
				break
			}
		}
		if rule < 0 {
			continue
		}
		for _, imp := range p.Imports {
			if strings.HasSuffix(p.Name, "test") && strings.HasSuffix(imp, "test") && plane(imp) == "" {
				continue // helpers of tests use those of no plane
			}
			if strings.HasPrefix(imp, "drover") && imp != "drover" && layerOf(imp) > 1 && !permitted(imp, allowed[rule].may,
				false) && imp != p.ImportPath {
				t.Errorf("%s imports %s: %s", p.ImportPath, imp, allowed[rule].reason)
			}
		}
	}
}

func permitted(imp string, list []string, exact bool) bool {
	for _, a := range list {
		if imp == a || !exact && strings.HasPrefix(imp, a) {
			return true
		}
	}
	return false
}

// pure packages have no I/O, no context, no goroutine shells.
func TestDecidersArePure(t *testing.T) {
	t.Parallel()
	pure := []string{
		"drover/internal/control/scheduler", "drover/internal/node/taskmachine", "drover/internal/exec/pool", "drover/internal/fleet/scaler",
	}
	forbidden := []string{"os", "net", "net/http", "context", "sync", "io/fs", "os/exec", "math/rand"}
	for _, p := range packages(t) {
		if !permitted(p.ImportPath, pure, false) || strings.HasSuffix(p.ImportPath, "test") {
			continue
		}
		for _, imp := range p.Imports {
			require.NotContains(t, forbidden, imp, "%s: deciders are values; loops own goroutines, contexts and I/O", p.ImportPath)
		}
	}
}

// quarantine: a library's only homes.
var quarantine = map[string][]string{
	"github.com/hashicorp/raft":                 {"drover/internal/control/raftlog", "drover/internal/control/autopilot"},
	"github.com/hashicorp/raft-autopilot":       {"drover/internal/control/autopilot"},
	"github.com/hashicorp/raft-boltdb/v2":       {"drover/internal/control/raftlog"},
	"github.com/hashicorp/serf/serf":            {"drover/internal/control/members"},
	"github.com/hashicorp/memberlist":           {"drover/internal/control/members"},
	"github.com/hashicorp/go-memdb":             {"drover/internal/control/store"},
	"github.com/tidwall/btree":                  {"drover/internal/control/store"},
	"github.com/moby/moby/client":               {"drover/internal/node/driver/docker", "drover/internal/fleet/provider/docker"},
	"github.com/hashicorp/nomad/api":            {"drover/internal/exec/nomadbackend"},
	"github.com/containernetworking/cni/libcni": {"drover/internal/node/cni"},
	"github.com/vishvananda/netlink":            {"drover/internal/node/driver/sandbox/bridge"},
	"github.com/chromedp/chromedp":              {"drover/internal/e2e"},
	"golang.org/x/crypto/ssh":                   {"drover/internal/fleet/bootstrap"},
	"github.com/aws/aws-sdk-go-v2/config":       {"drover/internal/fleet/provider/ec2"},
	"github.com/aws/aws-sdk-go-v2/aws/signer/v4": {
		"drover/internal/fleet/provider/ec2", "drover/internal/control/keyring/kms", "drover/internal/node/artifact",
	},
	"go.etcd.io/bbolt": {"drover/internal/control/raftlog", "drover/internal/node/localstate"},
	"github.com/google/go-containerregistry/pkg/v1/remote": {"drover/internal/node/image", "drover/internal/registry"},
	"github.com/hashicorp/cronexpr":                        {"drover/internal/cron"},
	"github.com/armon/go-metrics":                          {"drover/internal/telemetry"},
	"github.com/prometheus/client_golang/prometheus":       {"drover/internal/telemetry"},
	// Instead of these there is datadog-agent/pkg/template: see TestNothingCallsMethodsByName of internal/cli.
	"text/template": {},
	"html/template": {},
}

func TestLibrariesAreQuarantined(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		for _, imp := range p.Imports {
			homes, known := quarantine[imp]
			if known && !permitted(p.ImportPath, homes, false) {
				t.Errorf("%s imports %s, which lives in %v only: one place to change when it is replaced", p.ImportPath, imp, homes)
			}
		}
	}
}

func TestFakesStayInTests(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		if strings.HasPrefix(p.ImportPath, "drover/internal/sim") || strings.HasPrefix(p.ImportPath, "drover/internal/e2e") ||
			strings.HasPrefix(p.ImportPath, "drover/internal/server") || strings.HasSuffix(p.Name, "test") {
			continue
		}
		for _, imp := range p.Imports {
			if strings.HasPrefix(imp, "drover/") && (strings.HasSuffix(imp, "test") || strings.HasSuffix(imp, "/testkit")) {
				t.Errorf("%s imports %s: helpers of tests do not belong into the product", p.ImportPath, imp)
			}
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		if len(p.GoFiles) > 0 {
			require.NotEmpty(t, p.Doc, "%s needs a package comment", p.ImportPath)
			if p.Name != "main" {
				require.Contains(t, p.GoFiles, "doc.go", "%s: what a package is for stands in its doc.go", p.ImportPath)
			}
		}
	}
}
