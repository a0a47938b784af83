package forked

import (
	"io"
	"syscall"
)

// Close closes a file that was written and may be executed next. It waits for children between fork and exec, because the
// kernel refuses to execute what any process has open for writing ("text file busy").
func Close(f io.Closer) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return f.Close()
}
