package wire

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

var update = flag.Bool("update", false, "write the golden bytes of new messages; those of old ones never change")

const goldenFile = "testdata/version1.txt"

// golden are the messages as version 1 has them on the wire. A supervisor of today is talked to by agents of tomorrow:
// fields may be added at the end of a message, what is there stays as it is.
func golden() map[string]struct {
	bytes  []byte
	decode func([]byte) (any, error)
	want   any
} {
	type message = struct {
		bytes  []byte
		decode func([]byte) (any, error)
		want   any
	}
	x := Exec{Clone: true, Spec: execution.Spec{
		ID: "e1", Argv: []string{"a", "b c"}, Env: map[string]string{"K": "v"}, WorkDir: "/x", User: "1:2", Privileged: true, TTY: true,
		TTYStderr: true, Size: execution.WindowSize{Rows: 3, Cols: 4}, Stdin: true, KeepTree: true, Detach: -1, HideEnv: "NOMAD_",
		Limits: drover.Limits{Wall: time.Second, CPU: 2, CPUMHz: 3, MemoryMB: 4, Pids: 5, OutputBytes: 6, OpenFiles: 7, FileSizeMB: 8},
	}}
	r := execution.Receipt{
		ExecutionID: "e", ExitCode: 137, Signal: 9, Cause: execution.CauseOOM, Error: "x", StartedAt: time.Unix(7, 8), Wall: 1, UserCPU: 2,
		SystemCPU: 3, PeakMemory: 4, StdoutBytes: 5, StderrBytes: 6, Truncated: true,
	}
	var receipt Encoder
	receipt.Receipt(r)
	h := Hello{Min: 1, Max: 1, Pid: 42, ID: "i", Failure: "f"}
	b := Boot{
		ID: "i", LogTask: "t", LogMaxFiles: 2, LogMaxSize: 3, UID: 4, GID: 5, Groups: []uint32{6}, WorkDir: "/w",
		Env: map[string]string{"K": "v"}, Grace: 7, Sandbox: []byte("s"),
	}
	task := Task{Argv: []string{"a"}, Env: map[string]string{"K": "v"}, WorkDir: "/w", User: "u", Rlimits: map[int]uint64{7: 8}, Clone: true}
	return map[string]message{
		"hello":   {h.Encode(), func(p []byte) (any, error) { return DecodeHello(p) }, h},
		"exec":    {x.Encode(), func(p []byte) (any, error) { return DecodeExec(p) }, x},
		"boot":    {b.Encode(), func(p []byte) (any, error) { return DecodeBoot(p) }, b},
		"task":    {task.Encode(), func(p []byte) (any, error) { return DecodeTask(p) }, task},
		"receipt": {receipt.B, func(p []byte) (any, error) { d := Decoder{B: p}; r := d.Receipt(); return r, d.Err }, r},
		"data": {
			dataFrame(),
			func(p []byte) (any, error) { h, err := ParseHeader(p); return h, err },
			Header{Length: 10, Kind: KindData, Stream: 1, Channel: 9},
		},
		"ack": {Ack(2, 9, 1<<40), func(p []byte) (any, error) { return ParseAck(p[HeaderSize:]) }, int64(1 << 40)},
	}
}

func dataFrame() []byte {
	head := DataHead(1, 9, 77, 2)
	return append(head[:], "hi"...)
}

func TestGoldenMessages(t *testing.T) {
	t.Parallel()
	all := golden()
	known := readGolden(t)
	if *update {
		for name, m := range all {
			if known[name] == nil {
				known[name] = m.bytes
			}
		}
		writeGolden(t, known)
	}
	for name, m := range all {
		old := known[name]
		require.NotEmpty(t, old, "%s: run with -update", name)
		got, err := m.decode(old)
		require.NoError(t, err, name)
		require.Empty(t, cmp.Diff(m.want, got), "%s as it was sent by earlier versions", name)
		require.True(t, strings.HasPrefix(hex.EncodeToString(m.bytes), hex.EncodeToString(old)) || len(m.bytes) > len(old),
			"%s: what earlier versions read has changed", name)
	}
}

func readGolden(t *testing.T) map[string][]byte {
	t.Helper()
	known := map[string][]byte{}
	text, err := os.ReadFile(goldenFile)
	if os.IsNotExist(err) && *update {
		return known
	}
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		name, code, _ := strings.Cut(strings.TrimSpace(line), " ")
		b, err := hex.DecodeString(code)
		require.NoError(t, err)
		known[name] = b
	}
	return known
}

func writeGolden(t *testing.T, known map[string][]byte) {
	t.Helper()
	var out strings.Builder
	for _, name := range []string{"ack", "boot", "data", "exec", "hello", "receipt", "task"} {
		fmt.Fprintf(&out, "%s %x\n", name, known[name])
	}
	require.NoError(t, os.MkdirAll("testdata", 0o755))
	require.NoError(t, os.WriteFile(goldenFile, []byte(out.String()), 0o600))
}

// TestSpecWithoutItsNewestField is what agents of the first day sent.
func TestSpecWithoutItsNewestField(t *testing.T) {
	t.Parallel()
	x := Exec{Spec: execution.Spec{ID: "e", Argv: []string{"a"}}}
	b := x.Encode()
	old := append([]byte(nil), b[:len(b)-1]...) // HideEnv, empty
	old[1]--                                    // the length of the spec
	got, err := DecodeExec(old)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(x, got))
}
