package program

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/node/supervisor/spawn"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

const defaultOpenFiles = 1024 // soft: programs that loop over all descriptors stay fast

// Rlimit is a limit that a program cannot raise.
func Rlimit(resource int, v uint64) spawn.Rlimit {
	return spawn.Rlimit{Resource: resource, Cur: v, Max: v}
}

// OpenFiles limits open files to n; 0 undoes what the Go runtime did to our own soft limit.
func OpenFiles(n int) spawn.Rlimit {
	var own syscall.Rlimit
	_ = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &own)
	if n > 0 {
		v := min(uint64(n), own.Max)
		return Rlimit(unix.RLIMIT_NOFILE, v)
	}
	soft := uint64(defaultOpenFiles)
	if said, err := strconv.ParseUint(os.Getenv(wire.OpenFilesVariable), 10, 64); err == nil {
		soft = said
	}
	return spawn.Rlimit{Resource: unix.RLIMIT_NOFILE, Cur: min(soft, own.Max), Max: own.Max}
}
