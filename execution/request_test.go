package execution

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
)

func TestChangesThatCannotBeMadeAreRefusedBeforeAny(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change FileChange
		says   string
	}{
		"no path":                    {FileChange{Mkdir: true}, "want a path"},
		"nothing to do":              {FileChange{Path: "x"}, "exactly one"},
		"two things":                 {FileChange{Path: "x", Mkdir: true, Delete: true}, "exactly one"},
		"a directory with content":   {FileChange{Path: "x", Mkdir: true, Data: []byte{}}, "exactly one"},
		"two contents":               {FileChange{Path: "x", Data: []byte{}, Text: new("")}, "both text and data"},
		"a zero byte in the path":    {FileChange{Path: "a\x00b", Delete: true}, "want a path"},
		"more than permission bits":  {FileChange{Path: "x", Write: true, Mode: 0o10000}, "mode"},
		"more, of a directory's too": {FileChange{Path: "x", Mkdir: true, Mode: 0o40755}, "mode"},
	} {
		err := PrepareChanges([]FileChange{{Path: "fine", Write: true}, c.change})
		require.Equal(t, drover.Invalid, drover.CodeOf(err), name)
		require.ErrorContains(t, err, c.says, name)
		require.ErrorContains(t, err, "files[1]", "%s: it names the change", name)
	}
	require.NoError(t, PrepareChanges([]FileChange{{Path: "x", Write: true, Mode: 0o7777}}))
	require.NoError(t, PrepareChanges(nil))
}

// TestPreparedChangesAreThoseOfEitherForm: whether a client gives bytes or text, the same is written; to prepare twice
// changes nothing.
func TestPreparedChangesAreThoseOfEitherForm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		asText := []FileChange{{Path: "p", Text: &text}}
		asData := []FileChange{{Path: "p", Data: []byte(text)}}
		require.NoError(t, PrepareChanges(asText))
		require.NoError(t, PrepareChanges(asData))
		require.Equal(t, asData, asText)
		require.NoError(t, PrepareChanges(asText))
		require.Equal(t, asData, asText)
	})
}

func TestAChangeInJSON(t *testing.T) {
	t.Parallel()
	var changes []FileChange
	require.NoError(t, json.Unmarshal([]byte(`[{"path":"a","text":"hi"},{"path":"b","data":"AP8="},{"path":"c","text":""}]`), &changes))
	require.NoError(t, PrepareChanges(changes))
	require.Equal(t, []FileChange{
		{Path: "a", Write: true, Data: []byte("hi")}, {Path: "b", Write: true, Data: []byte{0, 255}}, {Path: "c", Write: true, Data: []byte{}},
	}, changes)
}

func TestOutputInAResult(t *testing.T) {
	t.Parallel()
	var r RunResult
	r.SetOutput([]byte("plain é"), nil)
	require.Equal(t, RunResult{Stdout: "plain é"}, r)

	r.SetOutput([]byte("text"), []byte{0xff})
	require.Equal(t, "base64", r.Encoding)
	require.Equal(t, "dGV4dA==", r.Stdout, "both streams, as there is one encoding")

	r.SetOutput([]byte("text again"), nil)
	require.Equal(t, RunResult{Stdout: "text again"}, r)
}

// TestOutputComesBackAsItWas through JSON, whatever a program writes.
func TestOutputComesBackAsItWas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		stdout := rapid.SliceOf(rapid.Byte()).Draw(t, "stdout")
		stderr := []byte(rapid.String().Draw(t, "stderr"))
		var sent, got RunResult
		sent.SetOutput(stdout, stderr)
		data, err := json.Marshal(sent)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &got))
		out, complaint, err := got.Output()
		require.NoError(t, err)
		require.Equal(t, string(stdout), string(out))
		require.Equal(t, string(stderr), string(complaint))
	})
}

func TestOutputThatIsNotBase64(t *testing.T) {
	t.Parallel()
	for stream, r := range map[string]RunResult{
		"stdout": {Encoding: "base64", Stdout: "?"}, "stderr": {Encoding: "base64", Stderr: "?"},
	} {
		_, _, err := r.Output()
		require.Equal(t, drover.Internal, drover.CodeOf(err))
		require.ErrorContains(t, err, stream)
	}
}

// TestTheNamesInJSON: clients in other languages know them. What is not set is left out, except argv.
func TestTheNamesInJSON(t *testing.T) {
	t.Parallel()
	for want, value := range map[string]any{
		`{"environment":"e","argv":null}`: RunRequest{Environment: "e"},
		`{"environment":"e","argv":["ls"],"wait":1000000000,"maxOutput":5}`: RunRequest{
			Environment: "e", Wait: time.Second, MaxOutput: 5, Request: Request{Spec: Spec{Argv: []string{"ls"}}},
		},
		`{"command":"ls | wc","argv":null,"input":"aGk=","webhook":"https://x/"}`: Request{
			Command: "ls | wc", Input: []byte("hi"), Webhook: "https://x/",
		},
		`{"type":"started","execution":"x","pid":7}`: Message{Type: MessageStarted, Execution: "x", Pid: 7},
		`{"type":"resize","rows":24,"cols":80}`:      Message{Type: MessageResize, Rows: 24, Cols: 80},
		`{"path":"a","delete":true}`:                 FileChange{Path: "a", Delete: true},
		`{"path":"a","recursive":true,"offset":3}`:   FileRequest{Path: "a", Recursive: true, Offset: 3},
	} {
		got, err := json.Marshal(value)
		require.NoError(t, err)
		require.JSONEq(t, want, string(got))
	}
}
