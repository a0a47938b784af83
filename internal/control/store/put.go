package store

import (
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/tenancy"
)

// PutJob stores the job as the current one and as its version.
func (t *Txn) PutJob(j *drover.Job) {
	t.insert(tables.Jobs, j)
	t.insert(tables.JobVersions, j)
	t.touch(tables.Jobs, tables.JobKey(j.Namespace, j.ID))
	t.touch(tables.JobVersions, tables.JobKey(j.Namespace, j.ID))
	t.jobRow(j.Namespace, j.ID).addGroups(j, t.index)
}

// PutJobVersion stores an older version.
func (t *Txn) PutJobVersion(j *drover.Job) {
	t.put(tables.JobVersions, tables.JobKey(j.Namespace, j.ID), j)
}

// DeleteJobVersion forgets one version.
func (t *Txn) DeleteJobVersion(j *drover.Job) {
	t.drop(tables.JobVersions, tables.JobKey(j.Namespace, j.ID), j)
	t.dropSubmission(j)
}

// DeleteJob forgets the job and its versions. Its allocations and evaluations stay.
func (t *Txn) DeleteJob(j *drover.Job) {
	t.remove(tables.Jobs, j)
	for _, v := range t.JobVersions(j.Namespace, j.ID) {
		t.remove(tables.JobVersions, v)
		t.dropSubmission(v)
	}
	t.touch(tables.Jobs, tables.JobKey(j.Namespace, j.ID))
	t.touch(tables.JobVersions, tables.JobKey(j.Namespace, j.ID))
	if e := t.ScalingEvents(j.Namespace, j.ID); e != nil {
		t.remove(tables.ScalingEvents, e)
		t.touch(tables.ScalingEvents, tables.JobKey(j.Namespace, j.ID))
	}
	r := t.jobRow(j.Namespace, j.ID)
	r.Summary.Summary = map[string]drover.TaskGroupSummary{}
	r.Summary.Children, r.Summary.CreateIndex = nil, 0
	t.touch(tables.JobSummaries, tables.JobKey(j.Namespace, j.ID))
	t.dropIfUnused(r)
}

// PutScalingEvents stores the scaling events of a job.
func (t *Txn) PutScalingEvents(e *drover.JobScalingEvents) {
	t.put(tables.ScalingEvents, tables.JobKey(e.Namespace, e.JobID), e)
}

// PutNode stores the node.
func (t *Txn) PutNode(n *drover.Node) {
	t.put(tables.Nodes, n.ID, n)
	for _, a := range slices.Collect(t.AllocationsByNode(n.ID)) { // registrations say what their node is
		t.register(a, a)
	}
}

// DeleteNode forgets the node.
func (t *Txn) DeleteNode(n *drover.Node) { t.drop(tables.Nodes, n.ID, n) }

// PutEvaluation stores the evaluation and counts it for its job.
func (t *Txn) PutEvaluation(e *drover.Evaluation) {
	old := t.Evaluation(e.ID)
	t.insert(tables.Evals, e)
	t.touchEval(e)
	if e.JobID != "" {
		t.jobRow(e.Namespace, e.JobID).countEval(old, e)
	}
}

// DeleteEvaluation forgets the evaluation.
func (t *Txn) DeleteEvaluation(e *drover.Evaluation) {
	t.remove(tables.Evals, e)
	t.touchEval(e)
	if e.JobID != "" {
		r := t.jobRow(e.Namespace, e.JobID)
		r.countEval(e, nil)
		t.dropIfUnused(r)
	}
}

func (t *Txn) touchEval(e *drover.Evaluation) {
	t.touch(tables.Evals, e.ID)
	t.touched[watchKey{tables.JobEvals, tables.JobKey(e.Namespace, e.JobID)}] = struct{}{}
}

// PutDeployment stores the deployment.
func (t *Txn) PutDeployment(d *drover.Deployment) {
	t.put(tables.Deployments, d.ID, d)
	t.touched[watchKey{tables.Deployments, tables.JobKey(d.Namespace, d.JobID)}] = struct{}{}
}

// DeleteDeployment forgets the deployment.
func (t *Txn) DeleteDeployment(d *drover.Deployment) {
	t.drop(tables.Deployments, d.ID, d)
	t.touched[watchKey{tables.Deployments, tables.JobKey(d.Namespace, d.JobID)}] = struct{}{}
}

// PutNamespace stores the namespace.
func (t *Txn) PutNamespace(n *tenancy.Namespace) {
	t.requota(t.Namespace(n.Name), n)
	t.put(tables.Namespaces, n.Name, n)
}

// DeleteNamespace forgets the namespace.
func (t *Txn) DeleteNamespace(n *tenancy.Namespace) {
	t.requota(n, nil)
	if x := t.Spent(n.Name); x != nil {
		t.drop(tables.ExecutionsSpent, n.Name, x)
	}
	t.drop(tables.Namespaces, n.Name, n)
}

// PutNodePool stores the node pool.
func (t *Txn) PutNodePool(p *drover.NodePool) { t.put(tables.NodePools, p.Name, p) }

// DeleteNodePool forgets the node pool.
func (t *Txn) DeleteNodePool(p *drover.NodePool) { t.drop(tables.NodePools, p.Name, p) }

// PutCluster stores what the servers are together.
func (t *Txn) PutCluster(c *cluster.State) { t.put(tables.Cluster, "", c) }

// PutLessee stores a server that warm runners are leased to.
func (t *Txn) PutLessee(l *cluster.Lessee) { t.put(tables.Lessees, l.Server, l) }

// DeleteLessee forgets the server.
func (t *Txn) DeleteLessee(l *cluster.Lessee) { t.drop(tables.Lessees, l.Server, l) }

// PutAutopilot stores how the servers are kept healthy.
func (t *Txn) PutAutopilot(a *cluster.Autopilot) { t.put(tables.Autopilot, "", a) }

// PutSchedulerConfig stores the scheduler's configuration.
func (t *Txn) PutSchedulerConfig(c *drover.SchedulerConfiguration) {
	t.put(tables.SchedulerConfig, "", c)
}

func (t *Txn) putBuiltins() {
	t.insert(tables.Namespaces, &tenancy.Namespace{
		Name: drover.DefaultNamespace, Description: "Default shared namespace",
	})
	t.insert(tables.NodePools, &drover.NodePool{Name: drover.DefaultNodePool, Description: "Default node pool."})
	t.insert(tables.NodePools, &drover.NodePool{Name: drover.AllNodePool, Description: "Node pool with all nodes in the cluster."})
	t.insert(tables.SchedulerConfig, &drover.SchedulerConfiguration{
		SchedulerAlgorithm: drover.SchedulerBinpack,
		PreemptionConfig:   drover.PreemptionConfig{SystemSchedulerEnabled: true},
	})
}
