package executor_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/executor"
)

// After a restart a rogue node named an execution of somebody else's runner as one of its own. It was taken up there, and the
// receipt that the node made up was told to the webhook of the other.
func TestANodeSpeaksOfItsOwnRunnersOnly(t *testing.T) {
	t.Parallel()
	cfg := executor.Config{LedgerPath: filepath.Join(t.TempDir(), "executions")}
	bubble(t, cfg, func(t *testing.T, b *bundle) {
		rogue, err := b.runners.Claim(t.Context(), execution.ClaimRequest{Environment: b.runner.Environment, Wait: time.Minute})
		require.NoError(t, err)
		spec := sh("sleep 1h")
		spec.Detach = -1
		x, err := b.CreateRequest(t.Context(), b.runner.ID, execution.Request{Spec: spec, Webhook: "https://example.org/"})
		require.NoError(t, err)
		synctest.Wait()
		b.stop()
		b.control.Node.Lie(b.runner.AllocID, rogue.AllocID)
		next := b.again(t, cfg)
		defer next.stop()
		defer b.control.Node.Break(rogue.AllocID) // nobody reads what runs there
		time.Sleep(2 * time.Minute)
		found, err := next.Info(t.Context(), x.ID)
		require.NoError(t, err)
		require.Equal(t, b.runner.ID, found.RunnerID)
		require.NotNil(t, found.Receipt)
		require.Equal(t, execution.CauseRunnerGone, found.Receipt.Cause, "what the rogue node says of it counts for nothing")
		require.Equal(t, 1, next.hooks.count())
	})
}

// A server that had been back for moments reached the node through another one, which was about to end and answered nothing. It waited
// for that answer for two minutes, and so nobody had the execution, though its own connection with the node was there a second later.
func TestANodeThatDoesNotAnswerIsAskedAgain(t *testing.T) {
	t.Parallel()
	for what, mute := range map[string]int{"what runs": 1, "and the attachment": 2} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
				x := b.sleeper(t)
				synctest.Wait()
				b.control.Node.CutLink(true)
				b.stop()
				b.control.Node.CutLink(false)
				b.control.Node.Mute(mute)
				next := b.again(t, executor.Config{})
				time.Sleep(time.Duration(mute)*5*time.Second + time.Second)
				require.True(t, next.Has(x.ID()))
				b.control.Node.CutLink(true)
				synctest.Wait()
				b.control.Node.Mute(mute) // now it is found, and its connection breaks
				b.control.Node.CutLink(false)
				time.Sleep(time.Minute)
				found, err := next.Info(t.Context(), x.ID())
				require.NoError(t, err)
				require.True(t, found.Running)
				time.Sleep(11 * time.Minute) // until it ended
				next.stop()
			})
		})
	}
}

// A node that answered nothing held up the takeover of what ran elsewhere: its runners were asked one after the other, each for as long as
// an answer may take.
func TestANodeThatDoesNotAnswerHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		all := []*executor.Execution{b.sleeper(t)}
		for range 3 {
			r, err := b.runners.Claim(t.Context(), execution.ClaimRequest{Environment: "e", IdleTimeout: time.Minute, Wait: time.Minute})
			require.NoError(t, err)
			spec := sh("sleep 10m")
			spec.Detach = -1
			x, err := b.Start(t.Context(), r.ID, spec)
			require.NoError(t, err)
			all = append(all, x)
			synctest.Wait()
		}
		b.control.Node.CutLink(true)
		b.stop()
		b.control.Node.CutLink(false)
		b.control.Node.Mute(3)
		next := b.again(t, executor.Config{})
		found := func() (n int) {
			for _, x := range all {
				if next.Has(x.ID()) {
					n++
				}
			}
			return n
		}
		time.Sleep(time.Second)
		require.Equal(t, 1, found(), "three were not answered")
		time.Sleep(5 * time.Second)
		require.Equal(t, 4, found())
		time.Sleep(11 * time.Minute) // until they ended
		next.stop()
	})
}
