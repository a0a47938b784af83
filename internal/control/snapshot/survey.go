package snapshot

import (
	"bufio"
	"fmt"
	"io"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/control/command"
)

// Cluster returns what the servers are together in the image; nil for a server that was always alone.
func (i *Image) Cluster() *cluster.State { return i.s.Cluster() }

// Share is how much of a snapshot one kind of records is.
type Share struct {
	Name    string
	Records int
	Bytes   int64
}

// shareNames says what is in each kind of records, for people.
var shareNames = map[recordKind]string{
	recMeta: "indexes", recNamespace: "namespaces", recNodePool: "node pools", recSchedulerConfig: "scheduler configuration",
	recJobVersion: "job versions", recJob: "jobs", recJobRow: "job summaries", recNode: "nodes", recEval: "evaluations",
	recDeployment: "deployments", recResources: "resources of allocations", recMetrics: "metrics of allocations",
	recOldJob: "job versions of allocations", recAlloc: "allocations", recEnd: "end", recScaling: "scaling events",
	recFleetIdentity: "fleet identity", recFleetPool: "fleet pools", recFleetInstance: "fleet machines", recFleetCost: "fleet costs",
	recPlaced: "allocations", recJobSubmission: "job submissions", recFleetMemory: "fleet memory", recCluster: "cluster",
	recExecution: "executions", recLessee: "lessees", recAutopilot: "autopilot", recACLBootstrap: "bootstrap of access control",
	recACLPolicy: "ACL policies", recACLRole: "ACL roles", recACLToken: "ACL tokens", recOneTimeToken: "one-time tokens",
	recRootKey:    "root keys",
	recAuthMethod: "auth methods", recBindingRule: "binding rules", recVariable: "variables", recQuota: "quotas",
	recExecutionSlot: "executions in quotas", recSpent: "use of executions", recAdmissionRule: "admission rules",
	recHostVolume: "host volumes", recVolumeClaim: "claims of host volumes", recRevocation: "revocations",
}

// Survey reads a snapshot to its end mark and says what it consists of, in the order of the snapshot. It does not decode what the
// records say. Errors: Invalid, and those of r.
func Survey(r io.Reader) (index uint64, shares []Share, err error) {
	x := &imageReader{recordReader: recordReader{r: bufio.NewReaderSize(r, 64<<10)}}
	if err := x.header(); err != nil {
		return 0, nil, err
	}
	at := map[string]int{}
	for {
		n := x.count
		kind, payload, err := x.next()
		if err != nil {
			return 0, nil, err
		}
		switch kind {
		case recEnd:
			return index, shares, x.end(n, payload)
		case recMeta:
			var m metaRecord
			if err := command.Unmarshal(payload, &m); err != nil {
				return 0, nil, err
			}
			index = m.Index
		default: // counted only
		}
		name, known := shareNames[kind]
		if !known {
			name = fmt.Sprintf("records of kind %d", kind)
		}
		i, seen := at[name]
		if !seen {
			i = len(shares)
			at[name], shares = i, append(shares, Share{Name: name})
		}
		shares[i].Records++
		shares[i].Bytes += int64(len(payload))
	}
}
