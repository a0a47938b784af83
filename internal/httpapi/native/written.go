package native

import (
	"encoding/json"
	"strconv"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/jsontext"
)

// written is a runner that writes itself, for the answer to a claim: its claimer waits for it.
type written execution.Runner

// AppendJSON appends the runner as encoding/json writes it, but for the escapes of HTML.
func (r written) AppendJSON(to []byte) (_ []byte, err error) {
	to = jsontext.AppendString(append(to, `{"id":`...), r.ID)
	to = jsontext.AppendString(append(to, `,"allocationId":`...), r.AllocID)
	to = jsontext.AppendString(append(to, `,"environment":`...), r.Environment)
	if r.Namespace != "" {
		to = jsontext.AppendString(append(to, `,"namespace":`...), r.Namespace)
	}
	to = jsontext.AppendString(append(to, `,"nodeId":`...), r.NodeID)
	to = jsontext.AppendString(append(to, `,"state":`...), r.State)
	if !r.ClaimedAt.IsZero() {
		if to, err = r.ClaimedAt.AppendText(append(to, `,"claimedAt":"`...)); err != nil {
			return nil, err
		}
		to = append(to, '"')
	}
	if r.IdleTimeout != 0 {
		to = strconv.AppendInt(append(to, `,"idleTimeout":`...), int64(r.IdleTimeout), 10)
	}
	if len(r.Labels) > 0 {
		to = jsontext.AppendMap(append(to, `,"labels":`...), r.Labels)
	}
	if len(r.Env) > 0 {
		to = jsontext.AppendMap(append(to, `,"env":`...), r.Env)
	}
	if r.Limits != nil {
		if to, err = appendRare(append(to, `,"limits":`...), r.Limits); err != nil {
			return nil, err
		}
	}
	if len(r.Ports) > 0 {
		if to, err = appendRare(append(to, `,"ports":`...), r.Ports); err != nil {
			return nil, err
		}
	}
	return append(to, '}'), nil
}

// appendRare appends what few runners have.
func appendRare(to []byte, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	return append(to, text...), err
}
