package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheEventsPageKeepsItsFilters(t *testing.T) {
	t.Parallel()
	w := ask(t, page(&api{}), "GET", "/ui/events?topic=Node&key=%3Cb%3E&namespace=n%22", "good", nil)
	require.Equal(t, http.StatusOK, w.Code)
	inert(t, w.Body.String())
	for _, s := range []string{
		`<option value="Node" selected="">`, `value="&lt;b&gt;"`, `value="n&#34;"`, `data-source="/ui/events/stream"`,
		"events.js",
	} {
		require.Contains(t, w.Body.String(), s)
	}
}

// TestEventsComeWithoutTheirPayloads: each event is a line with its page, whatever pieces the API's lines come in; the page begins a little
// before now, and with what comes if less is kept.
func TestEventsComeWithoutTheirPayloads(t *testing.T) {
	t.Parallel()
	var asked []string
	kept := true
	h := of(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		asked = append(asked, q.Get("index"))
		switch {
		case q.Get("brief") == "true":
			_, _ = w.Write([]byte(`{"Index":900}` + "\n"))
			return
		case !kept && q.Get("index") != "901":
			w.WriteHeader(http.StatusGone)
			return
		}
		line := `{}` + "\n" + `{"Index":7,"Events":[{"Topic":"Job","Type":"JobRegistered","Key":"a/b","Namespace":"ns",` +
			`"Payload":{"Job":{"secret":1}}},` +
			`{"Topic":"ACLToken","Key":"t"}]}` + "\n"
		for _, piece := range []string{line[:20], line[20:60], line[60:]} {
			_, _ = w.Write([]byte(piece))
		}
	}))
	const want = `{}` + "\n" + `{"Index":7,"Topic":"Job","Type":"JobRegistered","Key":"a/b","Namespace":"ns",` +
		`"To":"/ui/jobs/a%2Fb@ns"}` + "\n" +
		`{"Index":7,"Topic":"ACLToken","Type":"","Key":"t","Namespace":""}` + "\n"
	w := ask(t, h, "GET", "/ui/events/stream", "good", nil)
	require.Equal(t, want, w.Body.String())
	require.Equal(t, "", asked[0])
	require.Equal(t, "700", asked[1])
	asked = nil
	require.Equal(t, want, ask(t, h, "GET", "/ui/events/stream?index=12&topic=Job&key=x", "good", nil).Body.String())
	require.Equal(t, []string{"12"}, asked)
	kept = false
	require.Equal(t, want, ask(t, h, "GET", "/ui/events/stream", "good", nil).Body.String())
	require.Equal(t, http.StatusGone, ask(t, h, "GET", "/ui/events/stream?index=12", "good", nil).Code)
	require.Equal(t, http.StatusForbidden, ask(t, of(fixed{}), "GET", "/ui/events/stream", "", nil).Code)
	require.NotContains(t, strings.ToLower(w.Body.String()), "secret")
}
