package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"drover"
)

// ExecutionEvents follows what happens to executions.
type ExecutionEvents struct {
	body    io.ReadCloser
	decoder *json.Decoder
}

// ExecutionEvents streams events from the index on (0: the oldest kept), until ctx ends; of one runner, or (with "")
// of all. Close it. Errors: Gone if not all events from there on are kept.
func (c *Client) ExecutionEvents(ctx context.Context, index uint64, runner string) (*ExecutionEvents, error) {
	query := url.Values{"index": {strconv.FormatUint(index, 10)}}
	if runner != "" {
		query.Set("runner", runner)
	}
	body, err := c.open(ctx, request{method: http.MethodGet, path: []string{"executions", "events"}, query: query})
	if err != nil {
		return nil, err
	}
	return &ExecutionEvents{body, json.NewDecoder(body)}, nil
}

// Next blocks for the next events. After an error go on with the last event's index plus one. Errors: Unavailable.
func (e *ExecutionEvents) Next() (drover.Events, error) {
	for {
		var events drover.Events
		if err := e.decoder.Decode(&events); err != nil {
			return events, drover.Errorf(drover.Unavailable, "reading events: %w", err)
		}
		if len(events.Events) > 0 {
			return events, nil
		}
	}
}

// Close ends the stream.
func (e *ExecutionEvents) Close() error { return e.body.Close() }
