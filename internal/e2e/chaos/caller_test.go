package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/drover-project/drover/client"
)

// refusal is an answer with an error.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return fmt.Sprintf("%d: %s", r.status, r.text) }

// call asks a server, for as long as the time says. Errors: a refusal; others, of which it is not known what came of it.
func (w *world) call(server int, method, path string, query url.Values, in, out any, limit time.Duration) (http.Header, error) {
	ctx, cancel := context.WithTimeout(w.ctx, limit)
	defer cancel()
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	address := w.url(server) + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, err
	}
	res, err := w.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }() // it was read
	text, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return nil, err
	case res.StatusCode >= http.StatusBadRequest:
		return res.Header, &refusal{res.StatusCode, string(text)}
	case out != nil:
		return res.Header, json.Unmarshal(text, out)
	}
	return res.Header, nil
}

func (w *world) url(server int) string { return "http://" + w.servers[server].address + ":4646" }

// native is a client of our own API at the server.
func (w *world) native(server int) *client.Client {
	c, err := client.New(w.url(server), client.WithHTTPClient(w.http))
	if err != nil { // the address is no URL
		panic(err)
	}
	return c
}

// leader is the number of the server that leads in the newest term, or -1.
func (w *world) leader() int {
	best, newest := -1, ""
	for i := range w.servers {
		var self struct {
			Stats struct{ Raft map[string]string } `json:"stats"`
		}
		if _, err := w.call(i, http.MethodGet, "/v1/agent/self", nil, nil, &self, time.Second); err != nil {
			continue
		}
		term := fmt.Sprintf("%20s", self.Stats.Raft["term"])
		if self.Stats.Raft["state"] == "Leader" && term > newest {
			best, newest = i, term
		}
	}
	return best
}

// unwhole says why the servers are not whole: all vote, as each of them knows, and one leads.
func (w *world) unwhole() string {
	if w.leader() < 0 {
		return "none leads"
	}
	for i, h := range w.servers {
		var c struct {
			Servers []struct{ Voter bool }
		}
		if _, err := w.call(i, http.MethodGet, "/v1/operator/raft/configuration", nil, nil, &c, 2*time.Second); err != nil {
			return fmt.Sprintf("%s: %v", h.name, err)
		}
		n := 0
		for _, s := range c.Servers {
			if s.Voter {
				n++
			}
		}
		if n != len(w.servers) {
			return fmt.Sprintf("%s knows of %d that vote", h.name, n)
		}
	}
	return ""
}

func (w *world) whole() bool { return w.unwhole() == "" }
