package workloads

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/link/wire"
)

// Whatever a program writes and however it ends, the frame that arrives is the frame that was sent.
func TestFramesAreEncodedWhole(t *testing.T) {
	t.Parallel()
	codec := wire.Msgpack{}
	rapid.Check(t, func(t *rapid.T) {
		sent := execution.Frame{
			Stream: execution.Stream(rapid.IntRange(0, 2).Draw(t, "stream")), Offset: rapid.Int64().Draw(t, "offset"),
			Data: rapid.SliceOfN(rapid.Byte(), 1, 50).Draw(t, "data"), Started: rapid.Bool().Draw(t, "started"),
			Pid: rapid.Int().Draw(t, "pid"), Skipped: rapid.Bool().Draw(t, "skipped"),
		}
		if rapid.Bool().Draw(t, "ended") {
			sent.Receipt = &execution.Receipt{
				Cause: execution.CauseSignalled, ExitCode: rapid.IntRange(-1, 255).Draw(t, "code"),
				Error: rapid.String().Draw(t, "error"), StdoutBytes: rapid.Int64().Draw(t, "bytes"),
			}
		}
		text, err := codec.Marshal(&sessionEvent{Frame: &sent})
		require.NoError(t, err)
		var got sessionEvent
		require.NoError(t, codec.Unmarshal(text, &got))
		require.Equal(t, sent, *got.Frame)
		require.Error(t, codec.Unmarshal(text[:len(text)-1], &sessionEvent{}), "a part of it is refused")
	})
}
