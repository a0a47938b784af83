package supervised

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strings"

	"github.com/drover-project/drover/internal/node/driver"
)

// Where the allocation's folders are in a task with a root of its own, as Nomad has them.
const (
	AllocPath   = "/alloc"
	LocalPath   = "/local"
	SecretsPath = "/secrets"
)

// searchPath is where programs look for libraries.
const searchPath = "LD_LIBRARY_PATH"

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Environment of a task with a root of its own: the image's ("K=V") with the task's over it. The host's paths of the
// allocation become those inside.
func Environment(spec *driver.Spec, image []string) map[string]string {
	env := map[string]string{"PATH": defaultPath}
	for _, e := range image {
		if k, v, ok := strings.Cut(e, "="); ok {
			env[k] = v
		}
	}
	replace := InsidePaths(spec.Dirs)
	for k, v := range spec.Env {
		env[k] = replace.Replace(v)
	}
	if path := spec.Devices.LibraryPath; len(spec.Devices.Libraries) > 0 && !strings.Contains(env[searchPath], path) {
		env[searchPath] = strings.TrimPrefix(env[searchPath]+":"+path, ":")
	}
	maps.Copy(env, map[string]string{"NOMAD_ALLOC_DIR": AllocPath, "NOMAD_TASK_DIR": LocalPath, "NOMAD_SECRETS_DIR": SecretsPath})
	return env
}

// InsidePaths replaces the host's paths, which carry the allocation's id and so cannot be met by chance.
func InsidePaths(d driver.Dirs) *strings.Replacer {
	var pairs []string
	for _, p := range [][2]string{{d.Secrets, SecretsPath}, {d.Local, LocalPath}, {d.Shared, AllocPath}} {
		if len(p[0]) > len("/alloc/") {
			pairs = append(pairs, p[0], p[1])
		}
	}
	return strings.NewReplacer(pairs...)
}

// EmptyDir reports whether nothing is in a folder, or there is none.
func EmptyDir(path string) bool {
	entries, err := os.ReadDir(path)
	return (err == nil && len(entries) == 0) || errors.Is(err, fs.ErrNotExist)
}

// OpenLogs opens the folder of the task's logs, nil when they are thrown away.
func OpenLogs(l driver.LogConfig) (*os.File, error) {
	if l.Disabled || l.Dir == "" {
		return nil, nil // no logs are a valid answer
	}
	f, err := os.Open(l.Dir)
	if err != nil {
		return nil, fmt.Errorf("opening the log folder: %w", err)
	}
	return f, nil
}
