package loopback_test

import (
	"os"
	"os/signal"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is also the agent of the machines that the tests make: it runs until it is told to end.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		<-c
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // the race detector would take a second to exit
	}
	goleak.VerifyTestMain(m)
}
