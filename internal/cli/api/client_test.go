package api

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
)

// agent answers each path with a text; an absent one is 404.
func agent(t *testing.T, answers map[string]string) (c *Client, last func() *http.Request) {
	t.Helper()
	var seen *http.Request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r
		text, found := answers[r.URL.EscapedPath()]
		w.Header().Set("X-Nomad-Index", "12")
		if !found {
			w.WriteHeader(http.StatusNotFound)
			text = "no such thing\n"
		}
		_, _ = io.WriteString(w, text) // the client is this process
	}))
	t.Cleanup(s.Close)
	c, err := New(Target{Address: s.URL + "/", Token: "secret", Namespace: "dev", Region: "eu"})
	require.NoError(t, err)
	return c, func() *http.Request { return seen }
}

func TestRequestsSayWhoAsksAndWhere(t *testing.T) {
	t.Parallel()
	c, last := agent(t, map[string]string{"/v1/jobs": `["a"]`, "/v1/x": `{}`})
	var list []string
	index, err := c.Get(t.Context(), "/v1/jobs", url.Values{"a": {"b"}}, &list)
	require.NoError(t, err)
	require.Equal(t, uint64(12), index)
	require.Equal(t, []string{"a"}, list)
	require.Equal(t, "secret", last().Header.Get("X-Nomad-Token"))
	require.Equal(t, url.Values{"a": {"b"}, "namespace": {"dev"}, "region": {"eu"}}, last().URL.Query())
	require.NoError(t, c.Put(t.Context(), "/v1/x", url.Values{"namespace": {"other"}}, map[string]int{"n": 1}, nil))
	require.Equal(t, "other", last().URL.Query().Get("namespace"), "a query's own namespace counts")
	require.Equal(t, http.MethodPut, last().Method)
	require.NoError(t, c.Delete(t.Context(), "/v1/x", nil, nil))
	require.Equal(t, http.MethodDelete, last().Method)
	require.Empty(t, c.Anywhere(), "a namespace was chosen")
	require.Equal(t, url.Values{"namespace": {"*"}}, (&Client{}).Anywhere())
}

func TestAStatusIsACode(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]drover.Code{
		400: drover.Invalid, 401: drover.Unauthorized, 403: drover.Forbidden, 404: drover.NotFound, 409: drover.Conflict, 410: drover.Gone,
		413: drover.TooLarge, 429: drover.RateLimited, 501: drover.NotImplemented, 503: drover.Unavailable, 500: drover.Internal,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "  why  ", status) }))
		_, err := (&Client{HTTP: s.Client(), Address: s.URL}).Get(t.Context(), "/", nil, nil)
		s.Close()
		require.EqualError(t, err, "why")
		if status != 500 {
			require.Equal(t, want, drover.CodeOf(err), strconv.Itoa(status))
		}
	}
}

// A refusal says what right the request needs, in words whichever API refuses. What only looks like one of Drover's own is left as it is.
func TestARefusalSaysWhatIsNeeded(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"Permission denied": "Permission denied",
		`{"code":"forbidden","message":"Permission denied"}`: "Permission denied",
		`{"error":"a proxy's"}`:                              `{"error":"a proxy's"}`,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Drover-Needs", "node:write")
			http.Error(w, body, http.StatusForbidden)
		}))
		_, err := (&Client{HTTP: s.Client(), Address: s.URL}).Get(t.Context(), "/", nil, nil)
		s.Close()
		require.EqualError(t, err, want+" (it needs node:write)")
		require.Equal(t, drover.Forbidden, drover.CodeOf(err))
	}
}

func TestWhatCannotBeAsked(t *testing.T) {
	t.Parallel()
	c, _ := agent(t, map[string]string{"/v1/x": `{`})
	require.ErrorContains(t, c.Put(t.Context(), "/v1/x", nil, func() {}, nil), "unsupported type")
	_, err := c.Get(t.Context(), "/v1/x", nil, &struct{}{})
	require.ErrorContains(t, err, "reading the agent's answer")
	_, err = (&Client{HTTP: http.DefaultClient, Address: "http://%zz"}).Get(t.Context(), "/", nil, nil)
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupt"))
	_, err = c.Get(ctx, "/v1/x", nil, nil)
	require.Equal(t, drover.Canceled, drover.CodeOf(err))
	require.ErrorContains(t, err, "interrupt")
	require.NoError(t, c.CopyTo(ctx, io.Discard, "/v1/x", nil), "who has had enough of a stream is no error")
	var b bytes.Buffer
	require.NoError(t, c.CopyTo(t.Context(), &b, "/v1/x", nil))
	require.Equal(t, "{", b.String())
	require.Equal(t, drover.NotFound, drover.CodeOf(c.CopyTo(t.Context(), &b, "/v1/none", nil)))
}

func TestQueries(t *testing.T) {
	t.Parallel()
	require.Equal(t, url.Values{"a": {"b"}}, Query("a", "b", "c", "", "left"))
	require.Equal(t, url.Values{"x": {"y"}, "index": {"7"}, "wait": {"60s"}}, Blocking(url.Values{"x": {"y"}}, 7))
	rapid.Check(t, func(t *rapid.T) { // whatever an id holds, it is one part of the path
		id := rapid.String().Draw(t, "id")
		u, err := url.Parse("http://h" + JobPath(id, "/plan"))
		require.NoError(t, err)
		require.Equal(t, "/v1/job/"+id+"/plan", u.Path)
		require.Equal(t, 4, strings.Count(u.EscapedPath(), "/"))
	})
}

func TestManyCandidatesAreCut(t *testing.T) {
	t.Parallel()
	var list []string
	for i := range 15 {
		list = append(list, "web-"+strconv.Itoa(i))
	}
	self := func(s string) string { return s }
	_, err := Pick("job", "web", list, self, self)
	require.ErrorContains(t, err, "15 jobs begin with \"web\"")
	require.ErrorContains(t, err, "web-9")
	require.NotContains(t, err.Error(), "web-10")
	require.ErrorContains(t, err, "… and 5 more")
	_, err = Pick("job", "", nil, self, self)
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
}

func TestThingsAreFoundByTheBeginningOfTheirIDs(t *testing.T) {
	t.Parallel()
	c, last := agent(t, map[string]string{
		"/v1/allocations": `[{"ID": "a1", "Namespace": "n"}]`, "/v1/allocation/a1": `{"ID": "a1"}`,
		"/v1/nodes": `[{"ID": "b1", "Name": "box"}]`, "/v1/node/b1": `{"ID": "b1"}`, "/v1/evaluations": `[{"ID": "c1"}]`,
		"/v1/deployments": `[{"ID": "d1"}]`, "/v1/jobs": `[{"ID": "e/1", "Namespace": "n"}]`, "/v1/job/e%2F1": `{"ID": "e/1"}`,
		"/v1/agent/self": `{}`,
	})
	a, err := c.Allocation(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, "a1", a.ID)
	require.Equal(t, "n", last().URL.Query().Get("namespace"), "an allocation's own")
	for _, by := range []string{"b", "box", "b1"} {
		n, err := c.Node(t.Context(), by)
		require.NoError(t, err)
		require.Equal(t, "b1", n.ID)
	}
	e, err := c.Evaluation(t.Context(), "c")
	require.NoError(t, err)
	require.Equal(t, "c1", e.ID)
	d, err := c.Deployment(t.Context(), "d")
	require.NoError(t, err)
	require.Equal(t, "d1", d.ID)
	j, err := c.Job(t.Context(), "e")
	require.NoError(t, err)
	require.Equal(t, "e/1", j.ID)
	id, err := c.LocalNode(t.Context())
	require.NoError(t, err)
	require.Equal(t, "b1", id, "the only one there is")
	for _, find := range []func() error{
		func() error { _, err := c.Allocation(t.Context(), "x"); return err }, func() error { _, err := c.Node(t.Context(), "x"); return err },
		func() error { _, err := c.Evaluation(t.Context(), "x"); return err }, func() error {
			_,
				err := c.Deployment(t.Context(), "x")
			return err
		},
		func() error { _, err := c.Job(t.Context(), "x"); return err },
	} {
		require.Equal(t, drover.NotFound, drover.CodeOf(find()))
	}
}

func TestTheAuthoritiesOfAFolder(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	defer s.Close()
	dir := t.TempDir()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.pem"), text, 0o600))
	for _, target := range []Target{{CAPath: dir}, {CACert: filepath.Join(dir, "ca.pem")}, {SkipVerify: true}} {
		target.Address = s.URL
		c, err := New(target)
		require.NoError(t, err)
		_, err = c.Get(t.Context(), "/", nil, nil)
		require.NoError(t, err)
	}
	_, err := New(Target{CACert: dir})
	require.ErrorContains(t, err, "-ca-cert")
	empty := filepath.Join(dir, "empty.pem")
	require.NoError(t, os.WriteFile(empty, []byte("nothing"), 0o600))
	_, err = New(Target{CACert: empty})
	require.ErrorContains(t, err, "holds no certificate in PEM form")
	_, err = New(Target{CAPath: dir})
	require.ErrorContains(t, err, "holds no certificate in PEM form", "one of them")
}

// TestAllThatATargetHasComesFromTheEnvironment under Drover's names and under Nomad's, Drover's first.
func TestAllThatATargetHasComesFromTheEnvironment(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"DROVER_", "NOMAD_"} {
		env := map[string]string{}
		for _, name := range []string{
			"ADDR", "TOKEN", "NAMESPACE", "REGION", "CACERT", "CAPATH", "CLIENT_CERT", "CLIENT_KEY", "TLS_SERVER_NAME",
		} {
			env[prefix+name] = "of " + name
		}
		env[prefix+"SKIP_VERIFY"] = "true"
		got := Target{}.Resolved(func(k string) string { return env[k] })
		require.Equal(t, Target{
			Address: "of ADDR", Token: "of TOKEN", Namespace: "of NAMESPACE", Region: "of REGION", CACert: "of CACERT", CAPath: "of CAPATH",
			ClientCert: "of CLIENT_CERT", ClientKey: "of CLIENT_KEY", TLSServerName: "of TLS_SERVER_NAME", SkipVerify: true,
		}, got, prefix)
	}
	require.False(t, Target{}.Resolved(func(string) string { return "no" }).SkipVerify)
}

// TestTheBeginningOfAnAnswerIsPutBack after it was looked at.
func TestTheBeginningOfAnAnswerIsPutBack(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{"": false, "Clie": false, "Client": true, "Client sent": true, "client": false} {
		res := &http.Response{Body: io.NopCloser(strings.NewReader(body))}
		require.Equal(t, want, startsWith(res, "Client"), body)
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, body, string(text))
	}
}
