package rawexec

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/drover-project/drover/internal/node/driver"
)

// killMarked kills processes that carry the task's identity in their environment: without control groups this is how
// what a killed supervisor left behind is found.
func killMarked(s driver.State) {
	if s.AllocID == "" || s.TaskName == "" {
		return
	}
	for range 3 { // what forks away meanwhile is seen by the next round
		found := false
		names, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, n := range names {
			b, err := os.ReadFile(n)
			if err != nil || !hasVariable(b, "NOMAD_ALLOC_ID="+s.AllocID) || !hasVariable(b, "NOMAD_TASK_NAME="+s.TaskName) {
				continue
			}
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(n)))
			if pid > 1 && pid != os.Getpid() {
				found = syscall.Kill(pid, syscall.SIGKILL) == nil || found
			}
		}
		if !found {
			return
		}
	}
}

// hasVariable looks for a whole entry, so that no id is found as the start of a longer one.
func hasVariable(environ []byte, kv string) bool {
	return bytes.HasPrefix(environ, []byte(kv+"\x00")) || bytes.Contains(environ, []byte("\x00"+kv+"\x00"))
}
