package bench

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/checks"
)

// checks measures what a health check costs the node that carries it out. The agent answers: what that costs is another process's.
func (b *bench) checks(ctx context.Context) error {
	for _, c := range []checks.Check{
		{Type: "http", Method: "GET", URL: b.addr + "/v1/status/leader"},
		{Type: "tcp", Address: strings.TrimPrefix(b.addr, "http://")},
	} {
		var prober checks.Network
		n := b.n(5000)
		before, _ := cpuTimes(os.Getpid())
		for range n {
			limited, cancel := context.WithTimeout(ctx, 10*time.Second)
			_, output, ok := prober.Probe(limited, &c)
			cancel()
			if !ok {
				return drover.Errorf(drover.Internal, "a check of the agent: %s", output)
			}
		}
		after, _ := cpuTimes(os.Getpid())
		goal := ""
		if c.Type == "http" {
			goal = "≤ 100"
		}
		b.report("CPU of a health check, "+c.Type, (after-before)*1e6/float64(n), "µs", goal, "")
	}
	return nil
}
