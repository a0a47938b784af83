package evaluator

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
)

// Whatever is packed comes out again, and a content that was cut anywhere is refused or has fewer texts.
func TestPackedTextsComeOutAgain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.StringN(0, 20, -1), 0, 5).Draw(t, "texts")
		packed := Pack(texts...)
		got, err := Unpack(packed, len(texts))
		require.NoError(t, err)
		require.Equal(t, append([]string{}, texts...), append([]string{}, got...))
		if len(packed) > 0 {
			_, err = Unpack(packed[:rapid.IntRange(0, len(packed)-1).Draw(t, "cut")], len(texts))
			require.Error(t, err, "the last text is missing or torn")
		}
		_, err = Unpack(packed, len(texts)+1)
		require.Error(t, err)
	})
}

func TestFrames(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 50), 1, 4).Draw(t, "parts")
		var pipe bytes.Buffer
		require.NoError(t, writeFrame(&pipe, parts...))
		whole := bytes.Clone(pipe.Bytes())
		for _, want := range parts {
			got, err := readPart(&pipe, len(want))
			require.NoError(t, err)
			require.Equal(t, string(want), string(got))
		}
		_, err := readPart(&pipe, 0)
		require.ErrorIs(t, err, io.EOF, "nothing is left")

		cut := bytes.NewReader(whole[:rapid.IntRange(0, len(whole)-1).Draw(t, "cut")])
		for range parts {
			if _, err = readPart(cut, 1<<10); err != nil {
				break
			}
		}
		require.True(t, errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF), "%v", err)
	})
}

// What a child claims to send is not believed: no more is read than the asker wants.
func TestPartsAreBounded(t *testing.T) {
	t.Parallel()
	var pipe bytes.Buffer
	require.NoError(t, writeFrame(&pipe, []byte("abc")))
	_, err := readPart(&pipe, 2)
	require.ErrorIs(t, err, errTooLong)
	_, err = readPart(bytes.NewReader([]byte{0xff, 0xff, 0xff, 0xff}), maxRequest)
	require.ErrorIs(t, err, errTooLong, "before any memory is taken for it")
	broken := errors.New("the pipe is broken")
	require.ErrorIs(t, writeFrame(failing{broken}, []byte("a")), broken)
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// A child gets its limits as an argument.
func TestLimitsTravelAsAnArgument(t *testing.T) {
	t.Parallel()
	for _, l := range []Limits{{}, {Memory: 64 << 20, CPU: 5 * time.Second}, {Memory: 1, CPU: 1}} {
		got, err := parseLimits([]string{l.argument()})
		require.NoError(t, err)
		require.Equal(t, Limits{Memory: l.Memory, CPU: l.CPU}, got)
	}
	for _, args := range [][]string{nil, {""}, {"memory=1"}, {"memory=a,cpu=1"}, {"memory=1,cpu=1", "more"}} {
		_, err := parseLimits(args)
		require.Error(t, err, "%q", args)
	}
}

func TestCall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		f    Func
		code drover.Code
		says string // "" = it succeeds
	}{
		"a result":    {f: func(r []byte) ([]byte, error) { return append(r, '!'), nil }},
		"an error":    {func([]byte) ([]byte, error) { return nil, drover.Errorf(drover.Invalid, "line 1") }, drover.Invalid, "line 1"},
		"a panic":     {func([]byte) ([]byte, error) { panic("fault") }, drover.Internal, "evaluating the text: fault"},
		"no function": {nil, drover.Internal, `the evaluator has no function "name"`},
	} {
		got, err := call(c.f, request{"name", []byte("text")})
		if c.says == "" {
			require.NoError(t, err, name)
			require.Equal(t, "text!", string(got), name)
			continue
		}
		require.EqualError(t, err, c.says, name)
		require.Equal(t, c.code, drover.CodeOf(err), name)
	}
}

// What is larger than a child takes in is refused before anybody waits for it.
func TestLargeRequestsAreRefused(t *testing.T) {
	t.Parallel()
	p := New(Config{What: "the text", Workers: 1})
	_, err := p.Evaluate(t.Context(), "echo", make([]byte, maxRequest+1))
	require.Equal(t, drover.TooLarge, drover.CodeOf(err))
	require.ErrorContains(t, err, "the text and its variables have more than 64 MB")
}
