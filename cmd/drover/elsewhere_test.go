package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/sharetest"
)

// On other systems drover is the command line of an agent elsewhere, and must go on compiling as such.
func TestBuildsOnOtherSystems(t *testing.T) {
	t.Parallel()
	sharetest.Take(t)
	for _, system := range []string{"windows/amd64", "darwin/arm64"} {
		t.Run(strings.ReplaceAll(system, "/", "-"), func(t *testing.T) {
			t.Parallel()
			goos, goarch, _ := strings.Cut(system, "/")
			program := filepath.Join(t.TempDir(), "drover")
			build := exec.Command("go", "build", "-gcflags=all=-N -l", "-ldflags=-s -w", "-o", program, // it is not run
				"github.com/drover-project/drover/cmd/drover")
			build.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
			out, err := build.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.FileExists(t, program)
		})
	}
}
