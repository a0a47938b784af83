package web

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
	"github.com/drover-project/drover/internal/httpapi/web/play"
)

func program1() url.Values {
	return url.Values{
		"environment": {"e"}, "command": {"cat"}, "stdin": {"a\r\nb"}, "name": {"m.py"}, "text": {"x = 1\r\n"},
	}
}

func TestAFormWithoutJavaScript(t *testing.T) {
	t.Parallel()
	h := page(&api{environments: []execution.Environment{{ID: "other"}, {ID: "e"}}})
	w := ask(t, h, "POST", "/ui/play", "good", program1())
	body := w.Body.String()
	require.Contains(t, body, "cat|x = 1\n|&#34;a\\nb&#34;</pre>", "lines end as programs expect it")
	require.Contains(t, body, `<option value="e" selected="">`)
	require.Contains(t, body, play.Text.Causes["oom"])
	require.Contains(t, body, `<dd class="bad">137</dd>`)
	inert(t, body)

	of := page(&api{environments: []execution.Environment{{ID: "e"}, {ID: "e", Namespace: "team"}}})
	form := program1()
	form.Set("environment", "team~e")
	body = ask(t, of, "POST", "/ui/play", "good", form).Body.String()
	require.Contains(t, body, "cat|x = 1\n|", "the API is asked in the environment's namespace")
	require.Contains(t, body, `<option value="team~e" selected="">`)

	form = program1()
	form.Set("add", "1")
	body = ask(t, h, "POST", "/ui/play", "good", form).Body.String()
	require.Equal(t, 2, strings.Count(body, "<fieldset"))
	require.Contains(t, body, "x = 1\n", "nothing typed is lost")

	form = program1()
	form.Set("name", "")
	w = ask(t, h, "POST", "/ui/play", "good", form)
	require.Equal(t, http.StatusUnprocessableEntity, w.Code)
	require.Contains(t, w.Body.String(), "file 1: it has content, but no name")
	require.Contains(t, w.Body.String(), "x = 1\n")

	form["name"] = nil
	require.Equal(t, http.StatusBadRequest, ask(t, h, "POST", "/ui/play", "good", form).Code)
}

func TestWithoutEnvironmentOneIsOffered(t *testing.T) {
	t.Parallel()
	a := &api{}
	h := page(a)
	require.Contains(t, ask(t, h, "GET", "/ui/play", "good", nil).Body.String(), play.Text.MakeEnvironment)
	require.Equal(t, http.StatusSeeOther, ask(t, h, "POST", "/ui/play/environment", "good", nil).Code)
	require.Contains(t, a.called(), "PUT /v1/environment/playground")
	require.Contains(t, ask(t, h, "POST", "/ui/play/environment", "", nil).Body.String(), text.Forbidden)
}

func TestALiveRun(t *testing.T) {
	t.Parallel()
	a := &api{}
	h := page(a)
	require.JSONEq(t, `{"runner":"r/1"}`, ask(t, h, "POST", "/ui/play/claim", "good", program1()).Body.String())
	require.True(t, strings.HasSuffix(a.called(), "POST /v1/runner/r/1/files"), a.called())
	ask(t, h, "GET", "/ui/play/live/r%2F1", "good", nil)
	require.Contains(t, a.called(), "GET /v1/runner/r/1/execute")
	require.True(t, strings.HasSuffix(a.called(), "DELETE /v1/runner/r/1"), a.called())

	w := ask(t, h, "POST", "/ui/play/claim", "", program1())
	require.Equal(t, http.StatusForbidden, w.Code)
	require.JSONEq(t, `{"error":"Permission denied <b>"}`, w.Body.String())
	form := program1()
	form.Set("name", "")
	w = ask(t, h, "POST", "/ui/play/claim", "good", form)
	require.JSONEq(t, `{"error":"file 1: it has content, but no name"}`, w.Body.String())

	body := ask(t, h, "GET", "/ui/play", "good", nil)
	require.Contains(t, body.Header().Get("Content-Security-Policy"), "script-src 'self';")
}

func TestAReceiptForPeople(t *testing.T) {
	t.Parallel()
	say := func(body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost:4646/ui/play/facts", strings.NewReader(body))
		page(&api{}).ServeHTTP(w, r)
		return w
	}
	var facts []play.Fact
	w := say(`{"receipt":{"exitCode":137,"cause":"oom","wall":2000000},"claimed":1.5,"firstByte":0,"ended":20}`)
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &facts))
	require.Equal(t, []play.Fact{
		{Name: play.Text.Exit, Value: "137", Tone: "bad"},
		{Name: play.Text.Cause, Value: play.Text.Causes["oom"]},
		{Name: play.Text.Wall, Value: "2ms"},
	}, facts[:3])
	require.Contains(t, facts, play.Fact{Name: play.Text.Claimed, Value: "1.5ms"})
	require.Contains(t, facts, play.Fact{Name: play.Text.FirstByte, Value: parts.None})
	require.Equal(t, http.StatusBadRequest, say(`{"receipt":{"exitCode":"x"}}`).Code)
	require.Equal(t, http.StatusBadRequest, say(strings.Repeat(" ", 64<<10)+`{}`).Code)
}
