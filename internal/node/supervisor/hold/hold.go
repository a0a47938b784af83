// Package hold is drover-init as the only process of a container that has nothing to do but to be there, so that its
// network namespace is.
package hold

import (
	"os"
	"os/signal"
	"syscall"
)

// Command is the argument by which drover-init becomes this.
const Command = "hold"

// Main waits to be told to end.
func Main() int {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	<-end
	return 0
}
