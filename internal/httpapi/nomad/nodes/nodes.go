package nodes

import (
	"iter"
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/allocations"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/tables"
)

// listNodes answers GET /v1/nodes with a stub of each node; resources=true and os=true add to it.
func (f *face) listNodes(w http.ResponseWriter, r *http.Request) error {
	resources, err := httpapi.BoolParam(r, "resources", false)
	if err != nil {
		return err
	}
	osName, err := httpapi.BoolParam(r, "os", false)
	if err != nil {
		return err
	}
	return f.nodeLister(resources, osName).Serve(f.Cluster, w, r)
}

// nodeLister lists nodes in short. Resources adds what a node has and reserves; osName adds the one attribute
// "os.name". The callers may set Keep.
func (f *face) nodeLister(resources, osName bool) answer.Lister[*drover.Node, *drover.NodeListStub] {
	return answer.Lister[*drover.Node, *drover.NodeListStub]{
		On:    []answer.Source{{Table: tables.Nodes}},
		Items: func(q answer.Query, s answer.Snapshot) iter.Seq[*drover.Node] { return s.Nodes(q.Prefix) },
		ID:    func(n *drover.Node) string { return n.ID },
		Sees:  answer.Everybody[*drover.Node],
		Search: answer.Search[*drover.Node]{
			Words:  func(n *drover.Node) [4]string { return [4]string{n.Name, n.ID, n.NodePool, n.NodeClass} },
			Status: (*drover.Node).Condition,
			Sorts: map[string]func(*drover.Node) (uint64, string){
				"name":       func(n *drover.Node) (uint64, string) { return 0, n.Name },
				"pool":       func(n *drover.Node) (uint64, string) { return 0, n.NodePool },
				"datacenter": func(n *drover.Node) (uint64, string) { return 0, n.Datacenter },
				"class":      func(n *drover.Node) (uint64, string) { return 0, n.NodeClass },
				"status":     func(n *drover.Node) (uint64, string) { return 0, n.Condition() },
				"version":    func(n *drover.Node) (uint64, string) { return 0, n.Attributes["nomad.version"] },
				"modified":   func(n *drover.Node) (uint64, string) { return n.ModifyIndex, "" },
			},
		},
		View: func(n *drover.Node, _ answer.Snapshot) *drover.NodeListStub {
			stub := n.Stub()
			if resources {
				stub.NodeResources, stub.ReservedResources = n.NodeResources, n.ReservedResources
			}
			if osName {
				stub.Attributes = map[string]string{"os.name": n.Attributes["os.name"]}
			}
			return stub
		},
	}
}

// readNode answers GET /v1/node/ID. A node's secret is not part of its JSON.
func (f *face) readNode(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	find := func(_ answer.Query, s answer.Snapshot) (*drover.Node, uint64) {
		if n := s.Node(id); n != nil {
			return n, n.ModifyIndex
		}
		return nil, 0
	}
	return answer.Single(f.Cluster, w, r, answer.Source{Table: tables.Nodes, Key: id}, "node", find)
}

// nodeAllocations answers GET /v1/node/ID/allocations with the allocations in full.
func (f *face) nodeAllocations(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	return answer.Lister[*drover.Allocation, *allocations.View]{
		On:      []answer.Source{{Table: tables.Allocs}},
		Items:   func(_ answer.Query, s answer.Snapshot) iter.Seq[*drover.Allocation] { return s.AllocationsByNode(id) },
		ID:      func(a *drover.Allocation) string { return a.ID },
		Created: func(a *drover.Allocation) uint64 { return a.CreateIndex },
		View:    func(a *drover.Allocation, _ answer.Snapshot) *allocations.View { return allocations.NewView(a) },
		Sees:    allocations.Sees,
	}.Serve(f.Cluster, w, r)
}

// nodeResult answers writes to a node.
type nodeResult struct {
	NodeModifyIndex uint64
	EvalIDs         []string
	EvalCreateIndex uint64
	Index           uint64
}

// nodeWritten answers with the outcome in Nomad's shape. EvalIDs has one evaluation for each job whose work the
// change may move.
func (f *face) nodeWritten(w http.ResponseWriter, r *http.Request, o drover.Outcome) error {
	return f.Written(w, r, o, nodeResult{o.NodeModifyIndex, o.EvalIDs, o.EvalCreateIndex, o.Index})
}

// drainNode answers PUT /v1/node/ID/drain: the node is drained, or, without a DrainSpec, no longer.
func (f *face) drainNode(w http.ResponseWriter, r *http.Request) error {
	var b struct {
		NodeID       string
		DrainSpec    *drover.DrainSpec
		MarkEligible bool
		Meta         map[string]string
	}
	if err := httpapi.DecodeJSON(r, &b); err != nil {
		return err
	}
	id := r.PathValue("id")
	if b.NodeID != "" && b.NodeID != id {
		return drover.Errorf(drover.Invalid, "Node ID does not match")
	}
	// Nomad's own client sends MarkEligible with every drain; it counts only where a drain is cancelled.
	markEligible := b.MarkEligible && b.DrainSpec == nil
	o, err := f.Intake.DrainNode(r.Context(), drover.DrainRequest{NodeID: id, Spec: b.DrainSpec, MarkEligible: markEligible, Meta: b.Meta})
	if err != nil {
		return err
	}
	return f.nodeWritten(w, r, o)
}

// setEligibility answers PUT /v1/node/ID/eligibility: whether the scheduler may place work on the node.
func (f *face) setEligibility(w http.ResponseWriter, r *http.Request) error {
	var b struct{ NodeID, Eligibility string }
	if err := httpapi.DecodeJSON(r, &b); err != nil {
		return err
	}
	id := r.PathValue("id")
	if b.NodeID != "" && b.NodeID != id {
		return drover.Errorf(drover.Invalid, "Node ID does not match")
	}
	if b.Eligibility != drover.NodeEligible && b.Eligibility != drover.NodeIneligible {
		return drover.Errorf(drover.Invalid, "invalid scheduling eligibility %q: it is %q or %q",
			b.Eligibility, drover.NodeEligible, drover.NodeIneligible)
	}
	o, err := f.Intake.SetEligibility(r.Context(), id, b.Eligibility)
	if err != nil {
		return err
	}
	return f.nodeWritten(w, r, o)
}

// evaluateNode answers PUT /v1/node/ID/evaluate: the scheduler looks at all jobs on the node again.
func (f *face) evaluateNode(w http.ResponseWriter, r *http.Request) error {
	o, err := f.Intake.EvaluateNode(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return f.nodeWritten(w, r, o)
}

// purgeNode answers PUT /v1/node/ID/purge: the node is forgotten, and its allocations are lost.
func (f *face) purgeNode(w http.ResponseWriter, r *http.Request) error {
	o, err := f.Intake.PurgeNode(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return f.nodeWritten(w, r, o)
}

// askedNode is the node that a /v1/client request means: node_id, else the one in this process.
func (f *face) askedNode(id string) (exchange.Workloads, error) {
	id, err := f.nodeOrLocal(id)
	if err != nil {
		return nil, err
	}
	return f.Nodes.Workloads(id)
}

// nodeOrLocal completes an empty id with that of the node in this process. Errors: Invalid if this process has
// none; NotFound if the state does not know another node.
func (f *face) nodeOrLocal(id string) (string, error) {
	if id == "" {
		id = f.LocalNode()
	}
	if id == "" {
		return "", drover.Errorf(drover.Invalid, "this agent has no node: name one with node_id")
	}
	if id != f.LocalNode() && f.State.Snapshot().Node(id) == nil {
		return "", drover.Errorf(drover.NotFound, "node %q not found", id)
	}
	return id, nil
}

// nodeStats answers GET /v1/client/stats with a sample of the machine.
func (f *face) nodeStats(w http.ResponseWriter, r *http.Request) error {
	node, err := f.askedNode(r.URL.Query().Get("node_id"))
	if err != nil {
		return err
	}
	stats, err := node.NodeStats(r.Context())
	if err != nil {
		return err
	}
	return f.Reply(w, r, stats)
}

// nodeGC answers PUT /v1/client/gc: the node removes the folders of all ended allocations.
func (f *face) nodeGC(w http.ResponseWriter, r *http.Request) error {
	node, err := f.askedNode(r.URL.Query().Get("node_id"))
	if err != nil {
		return err
	}
	if err := node.CollectGarbage(r.Context(), ""); err != nil {
		return err
	}
	f.SetIndex(w, f.State.Snapshot().Index())
	w.WriteHeader(http.StatusOK) // Nomad's client refuses a body here
	return nil
}

// actionNeeds is what /v1/node/{id}/{action} needs.
func actionNeeds(r *http.Request) httpapi.Need {
	switch r.PathValue("action") {
	case "allocations":
		return nodeAllocationsNeed
	case "drain", "eligibility", "evaluate", "purge":
		return steersNode
	}
	return httpapi.Need{}
}

var (
	nodeAllocationsNeed = httpapi.Level(policy.Node, policy.Read).Showing("allocations of jobs that the caller may read")
	casesOfActions      = []httpapi.Case{
		{Path: "GET /v1/node/{id}/allocations", Need: nodeAllocationsNeed},
		{Path: "PUT,POST /v1/node/{id}/drain", Need: steersNode},
		{Path: "PUT,POST /v1/node/{id}/eligibility", Need: steersNode},
		{Path: "PUT,POST /v1/node/{id}/evaluate", Need: steersNode},
		{Path: "PUT,POST /v1/node/{id}/purge", Need: steersNode},
	}
	steersNode = httpapi.Level(policy.Node, policy.Write)
)

// nodeAction routes /v1/node/{id}/{action}.
func (f *face) nodeAction(w http.ResponseWriter, r *http.Request) error {
	writes := map[string]httpapi.Handle{
		"drain": f.drainNode, "eligibility": f.setEligibility, "evaluate": f.evaluateNode, "purge": f.purgeNode,
	}
	action := r.PathValue("action")
	handle, write := writes[action]
	if action == "allocations" {
		handle = f.nodeAllocations
	}
	switch {
	case handle == nil:
		return drover.Errorf(drover.NotFound, "no such node action: %q", action)
	case write == (r.Method == http.MethodGet): // writes take PUT and POST, reads GET only
		return answer.ErrMethod()
	}
	return handle(w, r)
}
