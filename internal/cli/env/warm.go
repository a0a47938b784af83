package env

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/internal/clock"
)

// AwaitWarm waits until n runners of the environment are ready, for a minute at most. The demonstration and the
// benchmarks use it. It gives up after ten seconds in which nothing started. Errors: Unavailable with the pool's last
// error; the API's.
func AwaitWarm(ctx context.Context, c *client.Client, environment string, n int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	now := clock.Wall{}.Now
	hopeful := now() // when something still went right
	for {
		pool, err := c.Pool(ctx, environment)
		if err != nil {
			return err
		}
		if pool.Warm >= n {
			return nil
		}
		// One failed start is no reason to give up while others are on their way.
		if pool.LastError == "" || pool.Warm+pool.Starting > 0 {
			hopeful = now()
		}
		if now().Sub(hopeful) > 10*time.Second {
			return drover.Errorf(drover.Unavailable, "the pool of %s does not fill: %s", environment, pool.LastError)
		}
		if !clock.Sleep(ctx, clock.Wall{}, 5*time.Millisecond) {
			return drover.Errorf(drover.Unavailable, "the pool of %s did not fill within a minute: %d of %d warm; %s", environment, pool.Warm, n,
				pool.LastError)
		}
	}
}
