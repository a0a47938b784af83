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
