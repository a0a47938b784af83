package native_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// receipts shows what is to be signed.
type receipts struct{}

func (receipts) SignReceipt(_ context.Context, st execution.Statement) (execution.SignedReceipt, error) {
	text, err := json.Marshal(st)
	return execution.SignedReceipt{Token: string(text), KeyID: "k"}, err
}

// TestSignedReceipts: what is signed is what was asked for and how it ended, and nothing of its environment; there is
// nothing before the end.
func TestSignedReceipts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	runner := w.claim()
	x, err := w.StartExecution(t.Context(), runner.ID, execution.Request{
		Spec: execution.Spec{Argv: []string{"cat"}, Stdin: true, Env: map[string]string{"PASSWORD": "hidden"}},
	})
	require.NoError(t, err)
	_, err = w.SignedReceipt(t.Context(), x.ID)
	require.Equal(t, drover.Conflict, code(err))
	require.ErrorContains(t, err, "still runs")
	require.NoError(t, w.Kill(t.Context(), x.ID))
	ended, err := w.WaitExecution(t.Context(), x.ID)
	require.NoError(t, err)
	signed, err := w.SignedReceipt(t.Context(), x.ID)
	require.NoError(t, err)
	require.Equal(t, "k", signed.KeyID)
	var st execution.Statement
	require.NoError(t, json.Unmarshal([]byte(signed.Token), &st))
	require.Equal(t, execution.Statement{
		Execution: x.ID, Runner: runner.ID, Environment: "e", Namespace: "default", Argv: []string{"cat"}, Receipt: *ended.Receipt,
	}, st)
	require.NotContains(t, signed.Token, "hidden")
	_, err = w.SignedReceipt(t.Context(), "none")
	require.Equal(t, drover.NotFound, code(err))
}
