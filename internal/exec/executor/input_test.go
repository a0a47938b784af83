package executor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// How far stdin has come is what the present session told, and what went to it; what went to one that broke is found out.
func TestHowFarStdinHasCome(t *testing.T) {
	t.Parallel()
	in := newInput()
	is := func(want int64, known, soon bool) {
		t.Helper()
		at, k, s := in.position()
		require.Equal(t, []any{want, known, soon}, []any{at, k, s})
	}
	is(0, false, false)
	in.wrote(in.current(), 3, nil) // before the session's first frame was read
	in.tell(new(int64(0)))
	is(3, true, false)
	in.wrote(in.current(), 4, nil)
	is(7, true, false)
	in.wrote(in.current(), 5, drover.Errorf(drover.Conflict, "stdin was closed"))
	is(7, true, false)

	broken := in.current()
	in.wrote(broken, 9, drover.Errorf(drover.Unavailable, "the connection broke"))
	is(7, true, true)
	in.change()
	in.wrote(in.current(), 2, nil)
	in.wrote(broken, 9, nil) // its answer comes late; the new session has told that already, or will
	in.tell(new(int64(16)))
	is(18, true, false)
	in.change()
	in.tell(nil)
	_, known, soon := in.position()
	require.False(t, known || soon, "an older supervisor")
}

// Stdin does not end for who resumes while bytes that it sent before are missing: it has to attach again, and sends them first.
func TestStdinDoesNotEndBeforeWhatIsMissing(t *testing.T) {
	t.Parallel()
	x := &Execution{id: "x", stdin: newInput(), done: make(chan struct{})}
	x.stdin.tell(new(int64(5)))
	for _, from := range []int64{3, 8} {
		require.Equal(t, drover.Conflict, drover.CodeOf(x.closeStdin(t.Context(), from)))
	}
	x.stdin.wrote(x.stdin.current(), 3, drover.Errorf(drover.Unavailable, "the connection broke"))
	require.Equal(t, drover.Conflict, drover.CodeOf(x.closeStdin(t.Context(), 5)))
	require.Len(t, x.stdin.turn, 1, "others may write")
}
