package allocrunner_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/node/driver"
)

func TestAgentRestartFindsTheTask(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBundle(t, job("batch", task("main", "", false))).start()
		b.restart()
		require.Equal(t, "start main, attach main", b.journal())
		require.Equal(t, "running", b.last().ClientStatus)
		b.restart()
		b.endTask("main", driver.Exit{})
		require.Equal(t, "complete", b.last().ClientStatus)
		b.restart() // of an ended one
		require.True(t, b.runner.View().Ended())
		require.Equal(t, "complete", b.last().ClientStatus)
		require.Equal(t, "start main, attach main, attach main, end main", b.journal())
	})
}

func TestAgentRestartLearnsTheExit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBundle(t, job("batch", task("main", "", false))).start()
		running := b.world.Running("main")
		b.leave()
		running.End(driver.Exit{Code: 7})
		b.restart()
		events := b.last().TaskStates["main"].Events
		require.Equal(t, 7, events[len(events)-2].ExitCode)
		require.Equal(t, "start main, end main, attach main", b.journal())
	})
}

func TestAgentRestartWaitsForControlBeforeStartingAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBundle(t, job("service", task("main", "", false))).start()
		b.leave()
		b.world.Lose()
		b.restart()
		b.sleep(time.Hour)
		require.Equal(t, "start main", b.journal())
		close(b.contacted)
		b.sleep(20 * time.Second)
		require.Equal(t, "start main, start main", b.journal())
		require.Contains(t, b.events("main"), "Failed Restoring Task, Restarting, Started")
	})
}

func TestAgentRestartOfAStoppedOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBundle(t, job("service", task("main", "", false))).start()
		b.leave()
		b.world.Lose()
		b.restart()
		b.stop() // control's first word is that it should stop
		close(b.contacted)
		b.sleep(time.Hour)
		require.Equal(t, "start main", b.journal())
		require.Equal(t, "complete", b.last().ClientStatus)
	})
}
