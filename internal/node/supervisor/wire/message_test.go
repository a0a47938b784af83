package wire

import (
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// TestMessagesComeAsTheyWereSent, and what a later version added to their end is ignored.
func TestMessagesComeAsTheyWereSent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text, number := rapid.String(), rapid.Int64()
		env := rapid.MapOfN(rapid.String(), rapid.String(), 0, 5)
		words := rapid.SliceOfN(rapid.String(), 0, 5)
		boot := Boot{
			ID: text.Draw(t, "id"), LogTask: text.Draw(t, "log"), LogMaxFiles: rapid.Int().Draw(t, "files"), LogMaxSize: number.Draw(t, "size"),
			UID: rapid.Uint32().Draw(t, "uid"), GID: rapid.Uint32().Draw(t, "gid"), Groups: rapid.SliceOfN(rapid.Uint32(), 0, 5).Draw(t, "groups"),
			WorkDir: text.Draw(t, "dir"), Env: env.Draw(t, "env"), Grace: time.Duration(number.Draw(t, "grace")),
			Sandbox: rapid.SliceOf(rapid.Byte()).Draw(t, "sandbox"), Drop: rapid.Uint64().Draw(t, "drop"),
			CgroupNamespace: rapid.Bool().Draw(t, "namespace"), Ambient: rapid.Uint64().Draw(t, "ambient"),
		}
		task := Task{
			Argv: words.Draw(t, "argv"), Env: env.Draw(t, "env"), WorkDir: text.Draw(t, "dir"), User: text.Draw(t, "user"),
			Rlimits: rapid.MapOfN(rapid.IntRange(0, 20), rapid.Uint64(), 0, 4).Draw(t, "rlimits"), Clone: rapid.Bool().Draw(t, "clone"),
		}
		hello := Hello{
			Min: rapid.Uint64().Draw(t, "min"), Max: rapid.Uint64().Draw(t, "max"), Pid: rapid.Int().Draw(t, "pid"),
			ID: text.Draw(t, "id"), Failure: text.Draw(t, "failure"),
		}
		exec := Exec{Spec: execution.Spec{ID: text.Draw(t, "id"), Argv: words.Draw(t, "argv"), HideEnv: text.Draw(t, "hide")}}
		for range rapid.IntRange(0, 2).Draw(t, "secrets") {
			exec.Spec.Secrets = append(exec.Spec.Secrets, execution.Secret{
				Env: text.Draw(t, "env"), File: text.Draw(t, "file"), Mask: rapid.Bool().Draw(t, "mask"),
			})
			exec.Spec.Values = append(exec.Spec.Values, text.Draw(t, "value"))
		}
		later := rapid.SliceOf(rapid.Byte()).Draw(t, "later")
		same := func(want, got any, err error) {
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(want, got, cmpopts.EquateEmpty()))
		}
		gotBoot, err := DecodeBoot(append(boot.Encode(), later...))
		same(boot, gotBoot, err)
		gotTask, err := DecodeTask(append(task.Encode(), later...))
		same(task, gotTask, err)
		gotHello, err := DecodeHello(append(hello.Encode(), later...))
		same(hello, gotHello, err)
		gotExec, err := DecodeExec(append(exec.Encode(), later...))
		same(exec, gotExec, err)
	})
}

// TestFileMessagesComeOneAfterTheOther: each knows its own end.
func TestFileMessagesComeOneAfterTheOther(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text, number := rapid.String(), rapid.Int64()
		info := execution.FileInfo{
			Path: text.Draw(t, "path"), Type: text.Draw(t, "type"), Size: number.Draw(t, "size"), Mode: rapid.Uint32().Draw(t, "mode"),
			UID: rapid.Int().Draw(t, "uid"), GID: rapid.Int().Draw(t, "gid"), Owner: text.Draw(t, "owner"), Group: text.Draw(t, "group"),
			ModTime: time.Unix(0, rapid.Int64Range(1, 1<<62).Draw(t, "time")), LinkTarget: text.Draw(t, "target"),
		}
		request := execution.FileRequest{
			Path: text.Draw(t, "path"), Recursive: rapid.Bool().Draw(t, "recursive"), Privileged: rapid.Bool().Draw(t, "privileged"),
			Offset: number.Draw(t, "offset"), Length: number.Draw(t, "length"),
		}
		change := execution.FileChange{
			Path: text.Draw(t, "path"), Delete: rapid.Bool().Draw(t, "delete"), Mkdir: rapid.Bool().Draw(t, "mkdir"),
			Write: rapid.Bool().Draw(t, "write"), Data: rapid.SliceOf(rapid.Byte()).Draw(t, "data"),
			Mode: rapid.Uint32().Draw(t, "mode"), Owner: text.Draw(t, "owner"),
		}
		var e Encoder
		for range 2 {
			e.FileInfo(info)
			e.FileRequest(request)
			e.FileChange(change)
		}
		d := Decoder{B: e.B}
		for range 2 {
			require.Empty(t, cmp.Diff(info, d.FileInfo()))
			require.Equal(t, request, d.FileRequest())
			require.Empty(t, cmp.Diff(change, d.FileChange(), cmpopts.EquateEmpty()))
		}
		require.NoError(t, d.Err)
		require.Empty(t, d.B)
	})
}

// TestHalfAMessageIsAnErrorOrAnOlderOne: what is there is as it was sent, what is not is zero.
func TestHalfAMessageIsAnErrorOrAnOlderOne(t *testing.T) {
	t.Parallel()
	whole := Hello{Min: 1, Max: 300, Pid: 70_000, ID: "an id", Failure: "none"}
	b := whole.Encode()
	for n := range b {
		h, err := DecodeHello(b[:n])
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			continue
		}
		for _, pair := range [][2]any{
			{h.Min, whole.Min}, {h.Max, whole.Max}, {h.Pid, whole.Pid}, {h.ID, whole.ID}, {h.Failure, whole.Failure},
		} {
			require.Contains(t, []any{pair[1], uint64(0), 0, ""}, pair[0], "%d bytes", n)
		}
	}
}

func TestHeadersComeAsTheyWereSent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := Header{
			Length: rapid.Uint32Range(0, MaxPayload).Draw(t, "length"), Kind: Kind(rapid.Uint8().Draw(t, "kind")),
			Stream: rapid.Uint8().Draw(t, "stream"), Fds: rapid.Uint8().Draw(t, "fds"), Channel: rapid.Uint32().Draw(t, "channel"),
		}
		b := make([]byte, HeaderSize)
		h.Put(b)
		got, err := ParseHeader(b)
		require.NoError(t, err)
		require.Equal(t, h, got)
	})
	b := make([]byte, HeaderSize)
	Header{Length: MaxPayload + 1}.Put(b)
	_, err := ParseHeader(b)
	require.ErrorContains(t, err, "at most")
}

func TestDataAndItsAcknowledgement(t *testing.T) {
	t.Parallel()
	for _, offset := range []int64{0, 1, 1 << 40} {
		head := DataHead(2, 7, offset, 3)
		frame := append(head[:], "abc"...)
		h, err := ParseHeader(frame)
		require.NoError(t, err)
		require.Equal(t, Header{Length: 11, Kind: KindData, Stream: 2, Channel: 7}, h)
		got, data, err := ParseData(frame[HeaderSize:])
		require.NoError(t, err)
		require.Equal(t, offset, got)
		require.Equal(t, "abc", string(data))
		got, err = ParseAck(Ack(2, 7, offset)[HeaderSize:])
		require.NoError(t, err)
		require.Equal(t, offset, got)
	}
	_, _, err := ParseData(make([]byte, 7))
	require.Error(t, err)
	_, err = ParseAck(make([]byte, 7))
	require.Error(t, err)
}

func TestErrorsKeepTheirCodes(t *testing.T) {
	t.Parallel()
	for _, code := range []drover.Code{drover.Invalid, drover.NotFound, drover.Conflict, drover.Gone, drover.Forbidden, drover.Exhausted} {
		err := DecodeError(EncodeError(drover.Errorf(code, "the reason")))
		require.Equal(t, code, drover.CodeOf(err))
		require.ErrorContains(t, err, "the reason")
	}
	require.Equal(t, drover.Internal, drover.CodeOf(DecodeError(EncodeError(syscall.EIO))))
	require.Error(t, DecodeError(nil), "an error that cannot be read is one")
}

func TestNamesOfSignals(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]syscall.Signal{
		"SIGINT": syscall.SIGINT, "int": syscall.SIGINT, "Term": syscall.SIGTERM, "sigkill": syscall.SIGKILL, "9": 9, "64": 64,
		"USR1": syscall.SIGUSR1,
	} {
		got, err := ParseSignal(name)
		require.NoError(t, err)
		require.Equal(t, want, got, name)
		require.NoError(t, CheckSignal(name))
	}
	for _, name := range []string{"", "0", "-1", "65", "SIG", "SIGSIGINT", "nothing", "9 "} {
		require.Equal(t, drover.Invalid, drover.CodeOf(CheckSignal(name)), name)
	}
}
