package program

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/flock"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

// leftovers lists what agents of this run left on the machine: processes, mounts, cgroups and files that name dir.
func leftovers(dir string) []string {
	var left []string
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range procs {
		for _, name := range []string{"cmdline", "environ"} {
			text, err := os.ReadFile(filepath.Join(p, name))
			if err == nil && strings.Contains(string(text), dir) && p != "/proc/"+strconv.Itoa(os.Getpid()) && !strings.Contains(string(text),
				".test") {
				left = append(left, "process "+p+": "+strings.ReplaceAll(string(text), "\x00", " "))
				break
			}
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err == nil {
		for line := range strings.Lines(string(mounts)) {
			if strings.Contains(line, dir) && !strings.Contains(line, " "+dir+" ") { // itself it may be one: inMemory
				left = append(left, "mount "+line)
			}
		}
	}
	for _, parent := range groupParents() {
		entries, err := os.ReadDir(parent)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if e.IsDir() && (e.Name() != "supervisors" || os.Remove(filepath.Join(parent, e.Name())) != nil) { // empty, it may stay
				left = append(left, "cgroup "+filepath.Join(parent, e.Name()))
			}
		}
		_ = os.Remove(parent) // empty: the parent is this run's own
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), "drover-dev-") {
			left = append(left, "folder "+path)
		}
		return nil
	})
	return left
}

const runPrefix = "drover-e2e-"

// GroupParent is this run's own parent of cgroups.
func GroupParent() string { return runPrefix + strconv.Itoa(os.Getpid()) }

// sweep ends and removes what an earlier run left that was killed.
func sweep() {
	folders, _ := filepath.Glob(filepath.Join(os.TempDir(), runPrefix+"*-*"))
	for _, dir := range folders {
		if drivertest.Abandoned(dir, runPrefix) {
			drivertest.SweepFolder(dir)
		}
	}
	drivertest.SweepGroups(runPrefix)
	drivertest.SweepGroupParents()
}

// groupParents are its folders, whichever hierarchies the machine has.
func groupParents() []string {
	var out []string
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		found, _ := filepath.Glob(pattern + GroupParent())
		out = append(out, found...)
	}
	return out
}

// sweepTokens removes what servers that were killed left for nodes of their user: the next server would.
func sweepTokens() {
	folders := []string{"/run", os.Getenv("XDG_RUNTIME_DIR")}
	if cache, err := os.UserCacheDir(); err == nil {
		folders = append(folders, cache)
	}
	for _, parent := range folders {
		files, _ := filepath.Glob(filepath.Join(parent, "drover-join", "*"))
		for _, path := range files {
			if f, err := os.Open(path); err == nil {
				if flock.TryShared(f) { // no server has it
					_ = os.Remove(path)
				}
				_ = f.Close()
			}
		}
		_ = os.Remove(filepath.Join(parent, "drover-join")) // unless others' servers run
	}
}
