package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/drover-project/drover"
)

// Events follows what happens.
type Events struct {
	ctx     context.Context // the stream's own
	body    io.ReadCloser
	decoder *json.Decoder
}

// Events streams events from the index on (0: the oldest kept), until ctx ends. Topics are as in "Execution",
// "Runner:<environment>", "Execution:<runner>"; none means all. Close it. Errors: Gone if not all events from there on
// are kept.
func (c *Client) Events(ctx context.Context, index uint64, topics ...string) (*Events, error) {
	query := url.Values{"index": {strconv.FormatUint(index, 10)}, "namespace": {"*"}}
	if len(topics) > 0 {
		query["topic"] = topics
	}
	body, err := c.open(ctx, request{method: http.MethodGet, path: []string{"event", "stream"}, query: query})
	if err != nil {
		return nil, err
	}
	return &Events{ctx, body, json.NewDecoder(body)}, nil
}

// Next blocks for the next events. After an error go on with the last index plus one. Errors: Unavailable, Canceled.
func (e *Events) Next() (drover.Events, error) {
	for {
		var line struct {
			drover.Events
			Error string
		}
		if err := e.decoder.Decode(&line); err != nil {
			return line.Events, broken(e.ctx, "reading events", err)
		}
		if line.Error != "" {
			return line.Events, drover.Errorf(drover.Unavailable, "reading events: %s", line.Error)
		}
		if len(line.Events.Events) > 0 {
			return line.Events, nil
		}
	}
}

// Close ends the stream.
func (e *Events) Close() error { return e.body.Close() }
