package fake_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
	"github.com/drover-project/drover/internal/node/driver/fake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	t.Parallel()
	world := fake.NewWorld()
	drivertest.Run(t, drivertest.Harness{
		New: func(*testing.T) driver.Driver { return fake.New(fake.Config{Clock: clock.Wall{}, World: world}) },
		Config: func(p drivertest.Program) map[string]any {
			c := map[string]any{"run_for": p.Run.String(), "exit_code": p.Exit}
			if p.Stdout != "" {
				c["stdout_string"] = p.Stdout + "\n"
			}
			return c
		},
		Missing: map[drivertest.Ability]string{
			drivertest.Programs: "tasks have no processes", drivertest.Shell: "the shell is a toy",
			drivertest.Isolation: "there is nothing to isolate", drivertest.Terminal: "there are no terminals",
			drivertest.Users: "there are no users", drivertest.Links: "there are no links",
		},
		Leftovers: func(*testing.T) []string { return world.Left() },
	})
}
