package agent

import (
	"context"
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
)

// monitor streams the agent's log lines.
func (f *face) monitor(w http.ResponseWriter, r *http.Request) error {
	if err := f.onlyHere(r); err != nil {
		return err
	}
	level := r.URL.Query().Get("log_level")
	switch level {
	case "":
		level = "info"
	case "trace", "debug", "info", "warn", "error", "TRACE", "DEBUG", "INFO", "WARN", "ERROR":
	default:
		return drover.Errorf(drover.Invalid, "Unknown log level: %s", level)
	}
	asJSON, err := httpapi.BoolParam(r, "log_json", false)
	if err != nil {
		return err
	}
	plain, err := httpapi.BoolParam(r, "plain", false)
	if err != nil {
		return err
	}
	if plain && asJSON {
		return drover.Errorf(drover.Invalid, "plain and log_json cannot be given together")
	}
	tail, err := f.Process.Logs(level, asJSON)
	if err != nil {
		return err
	}
	defer tail.Close()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	lines := answer.Pump(ctx, 64, tail.Next)
	f.SetIndex(w, f.State.Snapshot().Index())
	_ = answer.RelayFrames(ctx, f.Cluster, w, plain, lines, func(line []byte) answer.Frame { // ends with the client
		return answer.Frame{Data: line, FileEvent: "log"}
	})
	return nil
}
