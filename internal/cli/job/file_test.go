package job

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/cli/term"
)

// What a job was made of goes with it: the text, and the variables that it declares.
func TestJobSource(t *testing.T) {
	dir := t.TempDir()
	text := `variable "image" {}
variables { count = "1" }
job "web" {
  group "g" {
    task "t" {
      driver = "docker"
    }
  }
}`
	name, vars := filepath.Join(dir, "job.hcl"), filepath.Join(dir, "vars")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	require.NoError(t, os.WriteFile(vars, []byte(`count = "2"`), 0o600))
	t.Setenv("NOMAD_VAR_image", "nginx")
	t.Setenv("NOMAD_VAR_password", "of another job")
	f := &file{varFiles: []string{vars}}
	job, source, err := f.read(t.Context(), &term.App{Getenv: os.Getenv}, name)
	require.NoError(t, err)
	require.Equal(t, "web", job.ID)
	require.Equal(t, "hcl2", source.Format)
	require.Equal(t, text, source.Source)
	require.Equal(t, map[string]string{"image": "nginx"}, source.VariableFlags)
	require.Equal(t, "count = \"2\"\n", source.Variables)

	// The file wins over the environment, in the job and in what is kept of it: flags would win over the file there.
	t.Setenv("NOMAD_VAR_count", "3")
	_, source, err = f.read(t.Context(), &term.App{Getenv: os.Getenv}, name)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"image": "nginx"}, source.VariableFlags)

	require.NoError(t, os.WriteFile(name, []byte(`{"Job": {"ID": "web"}}`), 0o600))
	_, source, err = (&file{}).read(t.Context(), &term.App{Getenv: os.Getenv}, name)
	require.NoError(t, err)
	require.Equal(t, "json", source.Format)
}
