package completion_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/cli/clitest"
)

const alloc, node = "410a6e2e-6666-67af-b7a9-72c976c39df2", "a5df5710-ebc1-ba54-0e49-7ed4cd55d65d"

func world() map[string]string {
	return map[string]string{
		"GET /v1/jobs":        `[{"ID": "web", "Type": "service", "Status": "running"}, {"ID": "batch", "Type": "batch", "Status": "dead"}]`,
		"GET /v1/job/web":     `{"ID": "web", "TaskGroups": [{"Name": "front"}, {"Name": "back"}]}`,
		"GET /v1/nodes":       `[{"ID": "` + node + `", "Name": "box", "Status": "ready"}]`,
		"GET /v1/allocations": `[{"ID": "` + alloc + `", "Name": "web.front[0]", "ClientStatus": "running"}]`,
		"GET /v1/allocation/" + alloc: `{"ID": "` + alloc + `", "TaskGroup": "front", "Job": {"TaskGroups": [
			{"Name": "front", "Tasks": [{"Name": "serve", "Driver": "docker"}]}]}}`,
		"GET /v1/namespaces": `[{"Name": "default", "Description": "the\nusual"}, {"Name": "dev"}]`,
		"GET /v1/services":   `[{"Services": [{"ServiceName": "web"}]}]`,
		"GET /v1/node/pools": `[{"Name": "gpu", "Description": "fast"}]`,
		"GET /v1/vars":       `[{"Path": "app/db"}]`, "PUT /v1/search": `{"Matches": {"allocs": ["` + alloc + `"], "plugins": ["x"]}}`,
		"GET /v1/environments": `[{"id": "python"}]`, "GET /v1/runners": `[{"id": "r1", "environment": "python"}]`,
		"GET /v1/quotas": "! 403 Permission denied",
	}
}

// TestIDsAreCompleted by what a command's line of usage says of its words, and by names of flags. The last word is what is typed so far.
func TestIDsAreCompleted(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, world())
	for words, want := range map[string]string{
		"job status |":                "web\tservice running\nbatch\tbatch dead\n:4",
		"job status |w":               "web\tservice running\n:4",
		"job status web |":            ":0", // files, as the shell does by itself
		"job restart -namespace x |w": "web\tservice running\n:4",
		"stop |w":                     "web\tservice running\n:4",
		"job scale web |f":            "front\tgroup\n:4",
		"job run |":                   ":0",
		"alloc logs |":                "410a6e2e\tweb.front[0] running\n:4",
		"alloc logs |410a6e2e-6":      alloc + "\tweb.front[0] running\n:4",
		"alloc logs 410a |":           "serve\tdocker\n:4",
		"alloc logs --job |b":         "batch\tbatch dead\n:4",
		"node status |":               "a5df5710\tbox ready\nbox\tnode a5df5710\n:4",
		"node drain -enable |b":       "box\tnode a5df5710\n:4",
		"node meta read --node-id |":  "a5df5710\tbox ready\nbox\tnode a5df5710\n:4",
		"node pool info |":            "gpu\tfast\n:4",
		"job status --namespace |d":   "default\tthe usual\ndev\n:4",
		"namespace status |de":        "default\tthe usual\ndev\n:4",
		"quota status |":              ":4", // nothing, without a word
		"service info |":              "web\tservice\n:4",
		"var get |app/":               "app/db\tvariable\n:4",
		"status |4":                   "410a6e2e\talloc\n:4",
		"env status |":                "python\tenvironment\n:4",
		"run |p":                      "python\tenvironment\n:4",
		"run python |":                ":0",
		"runner rm r1 |":              "r1\tpython\n:4",
		"runner exec |":               "r1\tpython\n:4",
		"completion install |":        "bash\nzsh\nfish\n:4",
		"job promo|":                  "promote\tLet the canaries of a job replace its old version\n:4",
	} {
		before, typed, _ := strings.Cut(words, "|")
		if words == "job promo|" {
			before, typed = "job ", "promo"
		}
		r := api.Run(append(append([]string{"__complete"}, strings.Fields(before)...), typed)...)
		require.Zero(t, r.Code, r.Err)
		require.Equal(t, want, strings.TrimSpace(r.Out), words)
	}
	api.Set("GET /v1/jobs", "[{")
	require.Equal(t, ":4\n", api.Run("__complete", "job", "status", "").Out, "an agent that does not answer offers nothing")
	require.Contains(t, strings.Join(api.Asked(), "\n"), "GET /v1/jobs?per_page=200&prefix=")
}

func TestCompletionIsInstalled(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, nil)
	home := t.TempDir()
	api.Env = map[string]string{"HOME": home, "SHELL": "/usr/bin/fish"}
	for args, file := range map[string]string{
		"completion install":      ".config/fish/completions/drover.fish",
		"completion install bash": ".local/share/bash-completion/completions/drover",
		"completion install zsh":  ".local/share/zsh/site-functions/_drover",
	} {
		path := filepath.Join(home, file)
		api.Check(clitest.Case{Args: args, Out: []string{"Wrote " + path + ". "}})
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Contains(t, string(text), "__complete")
	}
	api.Env["SHELL"] = "/bin/tcsh"
	api.Check(clitest.Case{Args: "completion install", Code: 2, Err: []string{
		`no completion for "tcsh" can be installed: name bash, zsh or fish`,
	}})
	api.Env = nil
	api.Check(clitest.Case{Args: "completion install bash", Code: 2, Err: []string{"neither HOME nor XDG_DATA_HOME names a folder"}})
}
