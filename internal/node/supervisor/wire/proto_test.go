package wire

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

func TestExecRoundTrip(t *testing.T) {
	t.Parallel()
	x := Exec{Clone: true, Spec: execution.Spec{
		ID: "e1", Argv: []string{"a", "", "\xff\n"}, Env: map[string]string{"K": "v w", "L": ""}, WorkDir: "/x", User: "1:2",
		Privileged: true, TTY: true, TTYStderr: true, Size: execution.WindowSize{Rows: 3, Cols: 4}, Stdin: true, KeepTree: true,
		Limits: drover.Limits{Wall: time.Second, CPU: 2, CPUMHz: 3, MemoryMB: 4, Pids: 5, OutputBytes: 6, OpenFiles: 7, FileSizeMB: 8},
		Detach: -1,
	}}
	got, err := DecodeExec(x.Encode())
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(x, got))
}

func TestReceiptRoundTrip(t *testing.T) {
	t.Parallel()
	r := execution.Receipt{
		ExecutionID: "e", ExitCode: 137, Signal: 9, Cause: execution.CauseOOM, Error: "x", StartedAt: time.Unix(7, 8),
		Wall: 1, UserCPU: 2, SystemCPU: 3, PeakMemory: 4, StdoutBytes: 5, StderrBytes: 6, Truncated: true,
	}
	x := execution.Execution{ID: "e", Spec: execution.Spec{ID: "e"}, Pid: 4, Receipt: &r}
	var e Encoder
	e.Execution(x)
	d := Decoder{B: e.B}
	require.Empty(t, cmp.Diff(x, d.Execution()))
	require.NoError(t, d.Err)
}

func TestOlderSenderLeavesNewFieldsZero(t *testing.T) {
	t.Parallel()
	var e Encoder
	e.Uint(1)
	e.Uint(2)
	h, err := DecodeHello(e.B)
	require.NoError(t, err)
	require.Equal(t, Hello{Min: 1, Max: 2}, h)
}

func TestDecodersNeverPanic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		_, _ = DecodeExec(b)
		_, _ = DecodeTask(b)
		_, _ = DecodeBoot(b)
		_, _ = DecodeHello(b)
		_ = DecodeError(b)
		d := Decoder{B: b}
		d.Execution()
		d.FileChange()
		d.FileInfo()
		d.FileRequest()
	})
}

func TestErrorsKeepTheirCode(t *testing.T) {
	t.Parallel()
	err := DecodeError(EncodeError(drover.Errorf(drover.NotFound, "no such file: %q", "x")))
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
	require.EqualError(t, err, `no such file: "x"`)
}

func TestHeaderRoundTrip(t *testing.T) {
	t.Parallel()
	head := DataHead(2, 77, 1<<40, 5)
	h, err := ParseHeader(head[:])
	require.NoError(t, err)
	require.Equal(t, Header{Length: 13, Kind: KindData, Stream: 2, Channel: 77}, h)
	off, data, err := ParseData(append(head[HeaderSize:], "hello"...))
	require.NoError(t, err)
	require.Equal(t, int64(1<<40), off)
	require.Equal(t, "hello", string(data))
	_, err = ParseHeader([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0})
	require.Error(t, err)
}
