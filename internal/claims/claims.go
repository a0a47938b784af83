package claims

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/workload"
)

// Audience is that of identities which servers themselves take: of default ones, and of nodes.
const Audience = "nomadproject.io"

// Default is the name of a workload's identity that has no other.
const Default = "default"

// Claims are what an identity says. A claim that is empty is left out.
type Claims struct {
	jwt.Claims

	Namespace    string `json:"nomad_namespace,omitempty"`
	JobID        string `json:"nomad_job_id,omitempty"`
	AllocationID string `json:"nomad_allocation_id,omitempty"`
	Task         string `json:"nomad_task,omitempty"`
	Service      string `json:"nomad_service,omitempty"`

	NodeID         string `json:"nomad_node_id,omitempty"`
	NodeName       string `json:"nomad_node_name,omitempty"`
	NodePool       string `json:"nomad_node_pool,omitempty"`
	NodeClass      string `json:"nomad_node_class,omitempty"`
	NodeDatacenter string `json:"nomad_node_datacenter,omitempty"`

	Tenant      string `json:"drover_namespace,omitempty"`
	Environment string `json:"drover_environment_id,omitempty"`
	Runner      string `json:"drover_runner_id,omitempty"`
	Execution   string `json:"drover_execution_id,omitempty"`

	// Extra are further claims by their names. They never replace one of the above.
	Extra map[string]string `json:"-"`
}

// MarshalJSON writes all claims beside each other.
func (c *Claims) MarshalJSON() ([]byte, error) {
	type plain Claims
	data, err := json.Marshal((*plain)(c))
	if err != nil || len(c.Extra) == 0 {
		return data, err
	}
	all := map[string]any{}
	for name, value := range c.Extra {
		if !Reserved(name) {
			all[name] = value
		}
	}
	var own map[string]any
	if err := json.Unmarshal(data, &own); err != nil {
		return nil, err
	}
	maps.Copy(all, own)
	return json.Marshal(all)
}

// Reserved reports whether a claim of the name is the standard's, Nomad's or Drover's, so that nobody else says what it is.
func Reserved(name string) bool {
	standard := []string{"iss", "sub", "aud", "exp", "nbf", "iat", "jti"}
	return slices.Contains(standard, name) || strings.HasPrefix(name, "nomad_") || strings.HasPrefix(name, "drover_")
}

// Stamp is what tokens of one moment have in common.
type Stamp struct {
	Issuer string // "" = none is said
	Region string
	Now    time.Time
	ID     string // of the token
}

// standard are the claims of the standard. A ttl of 0 makes a token without an end.
func (s Stamp) standard(subject string, audience []string, ttl time.Duration) jwt.Claims {
	c := jwt.Claims{
		Issuer: s.Issuer, Subject: subject, Audience: audience, ID: s.ID,
		IssuedAt: jwt.NewNumericDate(s.Now), NotBefore: jwt.NewNumericDate(s.Now),
	}
	if ttl > 0 {
		c.Expiry = jwt.NewNumericDate(s.Now.Add(ttl))
	}
	return c
}

// Job is the job that an allocation's tasks are of: what was dispatched is of the job that it was dispatched from.
func Job(alloc *drover.Allocation) string {
	if alloc.Job != nil && alloc.Job.ParentID != "" {
		return alloc.Job.ParentID
	}
	return alloc.JobID
}

// Workload are the claims of a task's identity, or of a service's if the identity names one. What was dispatched is of the job that it was
// dispatched from.
func Workload(s Stamp, alloc *drover.Allocation, task string, w *workload.Identity) *Claims {
	job := Job(alloc)
	name := cmp.Or(w.Name, Default)
	audience := w.Audience
	if name == Default && len(audience) == 0 {
		audience = []string{Audience}
	}
	who := cmp.Or(w.ServiceName, task)
	c := &Claims{
		Claims:    s.standard(strings.Join([]string{s.Region, alloc.Namespace, job, alloc.TaskGroup, who, name}, ":"), audience, w.TTL),
		Namespace: alloc.Namespace, JobID: job, AllocationID: alloc.ID,
	}
	if w.ServiceName != "" {
		c.Service = w.ServiceName
	} else {
		c.Task = task
	}
	return c
}

// Node are the claims of a node's identity.
func Node(s Stamp, n *drover.Node, ttl time.Duration) *Claims {
	return &Claims{
		Claims: s.standard(strings.Join([]string{"node", s.Region, n.NodePool, n.ID, Default}, ":"), []string{Audience}, ttl),
		NodeID: n.ID, NodePool: n.NodePool, NodeClass: n.NodeClass, NodeDatacenter: n.Datacenter,
	}
}

// Introduction are the claims with which a machine becomes a node: of the pool, and of the name if there is one.
func Introduction(s Stamp, name, pool string, ttl time.Duration) *Claims {
	return &Claims{
		Claims:   s.standard(strings.Join([]string{"node-introduction", s.Region, pool, name, Default}, ":"), []string{Audience}, ttl),
		NodeName: name, NodePool: pool,
	}
}

// IsWorkload reports whether the claims are of a task, which servers themselves take.
func (c *Claims) IsWorkload() bool {
	return c.AllocationID != "" && c.Task != "" && c.Audience.Contains(Audience)
}

// IsNode reports whether the claims are of a node.
func (c *Claims) IsNode() bool {
	return c.NodeID != "" && strings.HasPrefix(c.Subject, "node:") && c.Audience.Contains(Audience)
}

// IsIntroduction reports whether the claims are of a machine that is about to become a node.
func (c *Claims) IsIntroduction() bool {
	return strings.HasPrefix(c.Subject, "node-introduction:") && c.Audience.Contains(Audience)
}

// Half is when a token is to be renewed that lives so long: at half of its life, and up to a tenth of it later by chance, which is in
// [0, 1).
func Half(ttl time.Duration, chance float64) time.Duration {
	return ttl/2 + time.Duration(float64(ttl/10)*chance)
}
