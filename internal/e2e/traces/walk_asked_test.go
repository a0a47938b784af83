package traces

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorder notes the requests that go through it.
type recorder struct {
	mu    sync.Mutex
	asked []asked
}

// asked is a request without what differs from run to run: the way, the names of its parameters and of its body's fields.
type asked struct {
	method, path   string
	params, fields []string
}

func (a asked) String() string {
	return fmt.Sprintf("%s %s params=%v body=%v", a.method, a.path, a.params, a.fields)
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	r.mu.Lock()
	r.asked = append(r.asked, newAsked(req.Method, req.URL, body))
	r.mu.Unlock()
	return http.DefaultTransport.RoundTrip(req)
}

// take returns what was asked since the last time, without the parsing of job files, which Nomad's program does by itself.
func (r *recorder) take() []asked {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := slices.DeleteFunc(r.asked, func(a asked) bool { return a.path == "/v1/jobs/parse" })
	r.asked = nil
	return out
}

// ofAJob is what stands behind a job's name in a path.
const ofAJob = "plan|allocations|evaluations|deployments?|summary|versions.*|scale|revert|evaluate|dispatch|periodic/force"

var (
	anID      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	afterJob  = regexp.MustCompile(`^/v1/job/[^?]*?(/(?:` + ofAJob + `))?$`)
	afterTags = regexp.MustCompile(`/versions/[^/]+/tag$`)
)

func newAsked(method string, u *url.URL, body []byte) asked {
	path := anID.ReplaceAllString(u.Path, "ID")
	path = afterTags.ReplaceAllString(afterJob.ReplaceAllString(path, "/v1/job/JOB$1"), "/versions/TAG/tag")
	a := asked{method: method, path: path}
	for name := range u.Query() {
		a.params = append(a.params, name)
	}
	slices.Sort(a.params)
	var fields map[string]any
	if json.Unmarshal(body, &fields) == nil {
		for name, v := range fields {
			if v != nil && name != "Meta" && name != "Submission" && v != "" && !emptied(v) {
				a.fields = append(a.fields, name)
			}
		}
	}
	slices.Sort(a.fields)
	return a
}

// emptied: the recording leaves empty values out.
func emptied(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// manual is what Nomad's command line asks, by command.
type manual map[string][]asked

func readManual(t *testing.T) manual {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "testdata", "nomad-cli.txt"))
	require.NoError(t, err)
	out, one := manual{}, manual{}
	verb := ""
	for _, line := range strings.Split(string(text), "\n") {
		kind, rest, _ := strings.Cut(line, " ")
		switch kind {
		case "$":
			verb = verbOf(strings.Fields(rest)[1:])
			one[verb] = nil
		case ">":
			if verb == "" {
				continue
			}
			parts := append(strings.SplitN(rest, " ", 3), "")
			u, err := url.Parse(parts[1])
			require.NoError(t, err)
			one[verb] = append(one[verb], newAsked(parts[0], u, []byte(parts[2])))
		case "exit":
			out.add(verb, one[verb])
			verb = ""
		}
	}
	return out
}

// add keeps the longest of several recordings, which is about one job and not about all. Of several alike only what is in all
// of them is asked always.
func (m manual) add(verb string, list []asked) {
	switch known := m[verb]; {
	case len(list) > len(known):
		m[verb] = list
	case len(list) == len(known):
		for i := range known {
			known[i].fields = slices.DeleteFunc(known[i].fields, func(f string) bool { return !slices.Contains(list[i].fields, f) })
		}
	}
}

// verbOf is the command without its flags and arguments, if walks use it.
func verbOf(args []string) string {
	verb := ""
	for _, a := range args {
		verb = strings.TrimSpace(verb + " " + a)
		if verbs[verb] != nil {
			return verb
		}
	}
	return ""
}

// check compares what a command asked with the recording of it. One that follows what it began, or is given a tag, asks more
// beside that.
func (m manual) check(verb string, have []asked) error {
	rest := have
	for _, w := range m[verb] {
		i := slices.IndexFunc(rest, w.in)
		if i < 0 {
			return fmt.Errorf("`nomad %s` asks %s, here\n    %s", verb, lined(m[verb]), lined(have))
		}
		rest = rest[i+1:]
	}
	return nil
}

// in: the other asks the same, perhaps with more that is optional.
func (a asked) in(other asked) bool {
	return a.method == other.method && a.path == other.path && has(other.params, a.params) && has(other.fields, a.fields)
}

func has(all, some []string) bool {
	for _, s := range some {
		if !slices.Contains(all, s) {
			return false
		}
	}
	return true
}

func lined(list []asked) string {
	var out []string
	for _, a := range list {
		out = append(out, a.String())
	}
	return strings.Join(out, "\n    ")
}
