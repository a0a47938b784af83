package nodes

import (
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
)

// readNodeMeta answers GET /v1/client/metadata.
func (f *face) readNodeMeta(w http.ResponseWriter, r *http.Request) error {
	return f.answerMeta(w, r, r.URL.Query().Get("node_id"), nil)
}

// writeNodeMeta sets keys of a node's metadata at runtime; null removes one.
func (f *face) writeNodeMeta(w http.ResponseWriter, r *http.Request) error {
	var b struct {
		NodeID string
		Meta   map[string]*string
	}
	if err := httpapi.DecodeJSON(r, &b); err != nil {
		return err
	}
	if len(b.Meta) == 0 {
		return drover.Errorf(drover.Invalid, "missing required Meta object")
	}
	for key := range b.Meta {
		if key == "" {
			return drover.Errorf(drover.Invalid, "Meta: a key is empty")
		}
	}
	id := b.NodeID
	if id == "" {
		id = r.URL.Query().Get("node_id")
	}
	return f.answerMeta(w, r, id, b.Meta)
}

// answerMeta makes the change, if there is one, and answers with what holds then.
func (f *face) answerMeta(w http.ResponseWriter, r *http.Request, id string, change map[string]*string) error {
	id, err := f.nodeOrLocal(id)
	if err != nil {
		return err
	}
	if change != nil {
		if _, err := f.Intake.SetNodeMeta(r.Context(), id, change); err != nil {
			return err
		}
	}
	n := f.State.Snapshot().Node(id)
	if n == nil {
		return drover.Errorf(drover.NotFound, "node %q not found", id)
	}
	dynamic := n.DynamicMeta
	if dynamic == nil {
		dynamic = map[string]*string{}
	}
	return f.Reply(w, r, struct {
		Meta    map[string]string
		Dynamic map[string]*string
		Static  map[string]string
	}{orEmpty(n.Meta), dynamic, orEmpty(n.OwnMeta())})
}

// orEmpty makes of a nil map one that is {} in JSON, not null.
func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}
