package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// fakeJava tells its version as OpenJDK does, and prints what it was called with, as whom, and the class that it was given.
const fakeJava = `#!/bin/sh
if [ "$1" = -version ]; then
  cat >&2 <<'E'
openjdk version "17.0.15" 2025-04-15
OpenJDK Runtime Environment (build 17.0.15+6-Debian-1deb12u1)
OpenJDK 64-Bit Server VM (build 17.0.15+6-Debian-1deb12u1, mixed mode, sharing)
E
  exit
fi
echo "$@"
id -un
cat "$NOMAD_TASK_DIR/Hello.class"
`

// TestNomadsJavaDriver: a class that an artifact brings is given to the java of the agent's PATH, whose version a job can ask for. It is
// not parallel, since it changes the PATH that its agent inherits.
func TestNomadsJavaDriver(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "java"), []byte(fakeJava), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Hello.class"), []byte("the class\n"), 0o644))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	a := start(t, append([]string{"-dev"}, config(t, "", clientBlock(fmt.Sprintf(`chroot_env {
    %q = "/opt/java"
    "/usr" = "/usr"
    "/bin" = "/bin"
    "/lib" = "/lib"
    "/lib64" = "/lib64"
    "/etc" = "/etc"
  }`, dir)))...)...)
	c := a.nomad()
	j := driverJob("java", "batch", "java", map[string]any{
		"class": "Hello", "class_path": "${NOMAD_TASK_DIR}", "args": []string{"${NOMAD_GROUP_NAME}"}, "jvm_options": []string{"-Xmx64m"},
	})
	task := j.TaskGroups[0].Tasks[0]
	task.Artifacts = []*api.TaskArtifact{{GetterSource: new(filepath.Join(dir, "Hello.class"))}}
	task.Constraints = []*api.Constraint{api.NewConstraint("${attr.driver.java.version}", "version", ">= 17.0")}
	_, _, err := c.Jobs().Register(j, nil)
	require.NoError(t, err)
	done := allocation(t, c, "java", "complete")
	require.Equal(t, "-Xmx64m -cp /local Hello group\nnobody\nthe class\n", logs(t, c, done.ID, "stdout"))
}
