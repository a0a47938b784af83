//go:build !linux

package doctor

import (
	"context"
	"runtime"
)

// examine says that tasks do not run on this machine.
func examine(context.Context, Probes, string) []finding {
	return []finding{{
		Check: "kernel", State: findingMissing, Needed: true,
		Says: runtime.GOOS + ": agents and their tasks run on Linux; here drover is the command line of an agent elsewhere (-address)",
	}}
}
