package term_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/term"
)

func TestOnlyYesConfirms(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]bool{
		"y\nn\n": true, " YES \n": true, "y": true, "\n": false, "": false, "n\ny\n": false, "yep\n": false,
	} {
		var says bytes.Buffer
		in := strings.NewReader(answer)
		err := (&term.App{In: in, Err: &says}).Confirm(t.Context(), "Really?")
		if want {
			require.NoError(t, err, answer)
		} else {
			require.Equal(t, drover.Canceled, drover.CodeOf(err), answer)
		}
		require.Equal(t, "Really? [y/N] ", says.String())
		_, rest, _ := strings.Cut(answer, "\n")
		require.Equal(t, len(rest), in.Len(), "the next answer is left")
	}
}
