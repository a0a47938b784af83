package e2e

import (
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// What Nomad's command line asks for its most used commands, and what Nomad answers, as a proxy between them saw it.
//
//go:embed testdata/nomad-cli.txt
var nomadCLI string

// Where our answers differ, a line each: METHOD /path, or $ command | what the test says of it | why. A star stands for
// anything.
//
//go:embed testdata/nomad-cli-exceptions.txt
var nomadCLIExceptions string

var nomadBinary = flag.String("nomad", "", "Nomad's own program: run the recorded commands themselves with it, too "+
	"(scripts/peer-nomad-cli)")

// recorded is a command of the recording with its requests.
type recorded struct {
	line  string // "$ nomad job status web" without the dollar
	exit  int
	asked []exchange
}

type exchange struct {
	method, path, body string
	status             int
	answer             string
}

func parseRecording(t *testing.T, text string) []recorded {
	t.Helper()
	var out []recorded
	for n, line := range strings.Split(text, "\n") {
		kind, rest, _ := strings.Cut(line, " ")
		switch kind {
		case "", "#":
		case "$":
			out = append(out, recorded{line: rest})
		case ">":
			parts := append(strings.SplitN(rest, " ", 3), "")
			last := &out[len(out)-1]
			last.asked = append(last.asked, exchange{method: parts[0], path: parts[1], body: parts[2]})
		case "=":
			code, answer, _ := strings.Cut(rest, " ")
			status, err := strconv.Atoi(code)
			require.NoError(t, err, "line %d", n+1)
			last := out[len(out)-1].asked
			last[len(last)-1].status, last[len(last)-1].answer = status, answer
		case "exit":
			code, err := strconv.Atoi(rest)
			require.NoError(t, err, "line %d", n+1)
			out[len(out)-1].exit = code
		default:
			require.Fail(t, "unknown line", "%d: %s", n+1, line)
		}
	}
	return out
}

// TestNomadsCommandLine sends what Nomad's own command line sends, and compares what comes back: status, keys and
// their types.
func TestNomadsCommandLine(t *testing.T) {
	t.Parallel()
	a := dev(t)
	s := &cliSession{
		t: t, addr: "http://" + a.addr, api: a.nomad(), ids: map[string]string{},
		exceptions: parseExceptions(t, nomadCLIExceptions),
	}
	commands := parseRecording(t, nomadCLI)
	require.Greater(t, len(commands), 100)
	if *nomadBinary != "" {
		s.writeFiles(commands)
	}
	for _, c := range commands {
		if *nomadBinary == "" {
			s.replay(c)
		} else {
			s.run(c)
		}
		s.settle()
	}
	if *nomadBinary == "" {
		for _, e := range s.exceptions {
			if !e.used && !strings.HasPrefix(e.request, "$") {
				t.Errorf("the exception %q | %q occurs no more: take it out", e.request, e.difference)
			}
		}
	}
}

type cliException struct {
	request, difference string
	used                bool
}

func parseExceptions(t *testing.T, text string) []*cliException {
	t.Helper()
	var out []*cliException
	for _, line := range strings.Split(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.Split(line, " | ")
		require.Len(t, parts, 3, "%s", line)
		out = append(out, &cliException{request: strings.TrimSpace(parts[0]), difference: strings.TrimSpace(parts[1])})
	}
	return out
}

// cliSession replays the recording against one agent.
type cliSession struct {
	t          *testing.T
	addr       string
	api        *api.Client
	ids        map[string]string // those of the recording to ours
	index      string            // of the newest scheduler configuration, for check-and-set
	exceptions []*cliException
}

func (s *cliSession) replay(c recorded) {
	s.t.Helper()
	for _, e := range c.asked {
		method, path, body := e.method, s.translate(e.path), s.translate(e.body)
		path = regexp.MustCompile(`\bcas=[1-9]\d*`).ReplaceAllString(path, "cas="+s.index)
		status, answer := s.send(method, path, body)
		key := method + " " + withoutIDs(e.path)
		if status != e.status {
			s.differs(c, key, fmt.Sprintf("status %d, Nomad's is %d", status, e.status), answer)
			continue
		}
		want, err := parseShape(e.answer)
		if err != nil { // a text, which is for people
			continue
		}
		var got any
		if err := json.Unmarshal([]byte(answer), &got); err != nil {
			s.differs(c, key, "no JSON", answer)
			continue
		}
		for _, d := range want.differences("", got) {
			s.differs(c, key, d, answer)
		}
		if m, ok := got.(map[string]any); ok && strings.HasPrefix(path, "/v1/operator/scheduler/configuration") && method == http.MethodGet {
			s.index = fmt.Sprint(int(m["SchedulerConfig"].(map[string]any)["ModifyIndex"].(float64)))
		}
	}
}

func (s *cliSession) differs(c recorded, request, difference, answer string) {
	s.t.Helper()
	for _, e := range s.exceptions {
		if like(e.request, request) && like(e.difference, difference) {
			e.used = true
			return
		}
	}
	s.t.Errorf("%s\n  %s | %s\n  %.300s", c.line, request, difference, answer)
}

func like(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(text)
}

func (s *cliSession) send(method, path, body string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.addr+path, strings.NewReader(body))
	require.NoError(s.t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	if strings.HasPrefix(path, "/v1/agent/monitor") { // it never ends
		return resp.StatusCode, ""
	}
	text, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return resp.StatusCode, string(text)
}

var uuid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

func withoutIDs(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return uuid.ReplaceAllString(path, "ID")
}

// translate puts our identifiers in place of the recording's.
func (s *cliSession) translate(text string) string {
	return uuid.ReplaceAllStringFunc(text, func(theirs string) string {
		ours, known := s.ids[theirs]
		if !known {
			ours = s.identify(text)
			s.ids[theirs] = ours
		}
		return ours
	})
}

// identify says which of our objects a request is about whose path names one of Nomad's.
func (s *cliSession) identify(path string) string {
	s.t.Helper()
	switch {
	case strings.Contains(path, "node"):
		nodes, _, err := s.api.Nodes().List(nil)
		require.NoError(s.t, err)
		require.Len(s.t, nodes, 1)
		return nodes[0].ID
	case strings.Contains(path, "deployment"):
		list, _, err := s.api.Jobs().Deployments("web", false, nil)
		require.NoError(s.t, err)
		newest := list[0]
		for _, d := range list {
			if d.CreateIndex > newest.CreateIndex {
				newest = d
			}
		}
		return newest.ID
	case strings.Contains(path, "eval"):
		list, _, err := s.api.Jobs().Evaluations("web", nil)
		require.NoError(s.t, err)
		return list[0].ID
	default:
		list, _, err := s.api.Jobs().Allocations("web", false, nil)
		require.NoError(s.t, err)
		for _, a := range list {
			if a.ClientStatus == "running" && a.DesiredStatus == "run" {
				return a.ID
			}
		}
		s.t.Fatalf("no allocation of job web runs: %s", path)
		return ""
	}
}

// settle waits until what the last command began has happened: whoever made the recording waited, too.
func (s *cliSession) settle() {
	s.t.Helper()
	eventually(s.t, "quiet", func() (bool, string) {
		evals, _, err := s.api.Evaluations().List(nil)
		if err != nil {
			return false, err.Error()
		}
		for _, e := range evals {
			if e.Status == "pending" {
				return false, e.TriggeredBy
			}
		}
		allocations, _, err := s.api.Jobs().Allocations("web", false, nil)
		if err != nil {
			return false, err.Error()
		}
		for _, a := range allocations {
			if (a.ClientStatus == "running") != (a.DesiredStatus == "run") {
				return false, a.ID + " " + a.ClientStatus
			}
		}
		deployment, _, err := s.api.Jobs().LatestDeployment("web", nil)
		if err != nil {
			return false, err.Error()
		}
		if deployment != nil && deployment.Status == "running" {
			for _, g := range deployment.TaskGroups {
				if g.HealthyAllocs < g.PlacedAllocs || g.DesiredCanaries == 0 && g.HealthyAllocs < g.DesiredTotal {
					return false, "deployment " + deployment.ID
				}
			}
		}
		return true, ""
	})
}

// run runs a recorded command with Nomad's own program, and compares how it ends.
func (s *cliSession) run(c recorded) {
	s.t.Helper()
	args := strings.Fields(s.translateCommand(c))[1:]
	if c.exit == 124 { // the recorder's own timeout: the command does not end by itself
		return
	}
	cmd := exec.CommandContext(s.t.Context(), *nomadBinary, args...)
	cmd.Env = append(os.Environ(), "NOMAD_ADDR="+s.addr)
	cmd.Dir = s.dir()
	out, err := cmd.CombinedOutput()
	code := 0
	if err != nil {
		code = cmd.ProcessState.ExitCode()
	}
	fmt.Printf("$ %s\nexit %d\n", strings.Join(args, " "), code)
	if strings.Contains(string(out), "panic:") {
		s.t.Errorf("%s: Nomad's client panicked:\n%s", c.line, out)
	}
	if code != c.exit {
		s.differs(c, "$ "+withoutIDs(strings.TrimPrefix(c.line, "nomad ")), fmt.Sprintf("exit %d, Nomad's is %d", code, c.exit), string(out))
	}
}

// translateCommand puts our identifiers into a command: what they name is seen in the requests that follow from it.
func (s *cliSession) translateCommand(c recorded) string {
	for _, e := range c.asked {
		if uuid.MatchString(e.path) {
			s.translate(e.path)
		}
	}
	return s.translate(c.line)
}

func (s *cliSession) dir() string { return filepath.Join(os.TempDir(), "nomad-cli") }

// writeFiles writes the files that the commands name: job files as they were submitted, and two small ones.
func (s *cliSession) writeFiles(commands []recorded) {
	s.t.Helper()
	require.NoError(s.t, os.MkdirAll(s.dir(), 0o700))
	s.t.Cleanup(func() { os.RemoveAll(s.dir()) })
	files := map[string]string{
		"pool.hcl": "node_pool \"gpu\" {\n  description = \"x\"\n}\n",
		"ns.hcl":   "name = \"team\"\n",
	}
	for _, c := range commands {
		for _, e := range c.asked {
			var sent struct {
				Submission struct{ Source string }
				Job        struct{ ID string }
			}
			if e.path == "/v1/jobs" && e.body != "" && json.Unmarshal([]byte(e.body), &sent) == nil {
				files[sent.Job.ID+".nomad.hcl"] = sent.Submission.Source
			}
		}
	}
	for name, text := range files {
		require.NoError(s.t, os.WriteFile(filepath.Join(s.dir(), name), []byte(text), 0o600))
	}
}
