package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	agentconfig "github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/unheeded"
	"github.com/drover-project/drover/jobspec"
)

const examples = "../../examples"

// TestExampleProgramsRun builds the programs of the examples' module against this tree, and runs them against an agent.
func TestExampleProgramsRun(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin, "./...")
	build.Dir, build.Env = examples, append(os.Environ(), "CGO_ENABLED=0") // as the other programs of the tests
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	a := dev(t)
	for name, want := range map[string]string{"claim": "hello, world\nexit code 0", "register": "hello from hello\n"} {
		run := exec.Command(filepath.Join(bin, name))
		run.Env = append(os.Environ(), "DROVER_ADDR=http://"+a.addr)
		out, err := run.CombinedOutput()
		require.NoError(t, err, "%s: %s", name, out)
		require.Contains(t, string(out), want, name)
	}
}

func TestExampleJobsAreValid(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(examples, "jobs", "*.hcl"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		job, err := jobspec.Parse(text, jobspec.Options{Name: path})
		require.NoError(t, err)
		job.Canonicalize()
		require.NoError(t, job.Validate(), path)
		require.Empty(t, unheeded.Warnings(job), path)
	}
}

func TestExampleConfigurationsAreValid(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(examples, "*.hcl"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		file, err := agentconfig.Load(path)
		require.NoError(t, err)
		base := agentconfig.Default()
		if strings.HasSuffix(path, "fleet.hcl") {
			base = agentconfig.Merge(base, agentconfig.DevMode())
		}
		require.NoError(t, agentconfig.Merge(base, file).Validate(), path)
		require.Empty(t, file.Ignored, path)
	}
}
