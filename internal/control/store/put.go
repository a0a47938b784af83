package store

import "github.com/drover-project/drover"

// PutJob stores the job as the current one and as its version.
func (t *Txn) PutJob(j *drover.Job) {
	t.insert(TableJobs, j)
	t.insert(TableJobVersions, j)
	t.touch(TableJobs, JobKey(j.Namespace, j.ID))
	t.touch(TableJobVersions, JobKey(j.Namespace, j.ID))
	t.jobRow(j.Namespace, j.ID).cover(j, t.index)
}

// PutJobVersion stores an older version.
func (t *Txn) PutJobVersion(j *drover.Job) {
	t.insert(TableJobVersions, j)
	t.touch(TableJobVersions, JobKey(j.Namespace, j.ID))
}

// DeleteJobVersion forgets one version.
func (t *Txn) DeleteJobVersion(j *drover.Job) {
	t.remove(TableJobVersions, j)
	t.touch(TableJobVersions, JobKey(j.Namespace, j.ID))
	t.dropSubmission(j)
}

// DeleteJob forgets the job and its versions. Its allocations and evaluations stay.
func (t *Txn) DeleteJob(j *drover.Job) {
	t.remove(TableJobs, j)
	for _, v := range t.JobVersions(j.Namespace, j.ID) {
		t.remove(TableJobVersions, v)
		t.dropSubmission(v)
	}
	t.touch(TableJobs, JobKey(j.Namespace, j.ID))
	t.touch(TableJobVersions, JobKey(j.Namespace, j.ID))
	if e := t.ScalingEvents(j.Namespace, j.ID); e != nil {
		t.remove(TableScalingEvents, e)
		t.touch(TableScalingEvents, JobKey(j.Namespace, j.ID))
	}
	r := t.jobRow(j.Namespace, j.ID)
	r.Summary.Summary = map[string]drover.TaskGroupSummary{}
	r.Summary.Children, r.Summary.CreateIndex = nil, 0
	t.touch(TableJobSummaries, JobKey(j.Namespace, j.ID))
	t.dropIfUnused(r)
}

// PutScalingEvents stores the scaling events of a job.
func (t *Txn) PutScalingEvents(e *drover.JobScalingEvents) {
	t.insert(TableScalingEvents, e)
	t.touch(TableScalingEvents, JobKey(e.Namespace, e.JobID))
}

// PutNode stores the node.
func (t *Txn) PutNode(n *drover.Node) {
	t.insert(TableNodes, n)
	t.touch(TableNodes, n.ID)
}

// DeleteNode forgets the node.
func (t *Txn) DeleteNode(n *drover.Node) {
	t.remove(TableNodes, n)
	t.touch(TableNodes, n.ID)
}

// PutEvaluation stores the evaluation and counts it for its job.
func (t *Txn) PutEvaluation(e *drover.Evaluation) {
	old := t.Evaluation(e.ID)
	t.insert(TableEvals, e)
	t.touchEval(e)
	if e.JobID != "" {
		t.jobRow(e.Namespace, e.JobID).countEval(old, e)
	}
}

// DeleteEvaluation forgets the evaluation.
func (t *Txn) DeleteEvaluation(e *drover.Evaluation) {
	t.remove(TableEvals, e)
	t.touchEval(e)
	if e.JobID != "" {
		r := t.jobRow(e.Namespace, e.JobID)
		r.countEval(e, nil)
		t.dropIfUnused(r)
	}
}

func (t *Txn) touchEval(e *drover.Evaluation) {
	t.touch(TableEvals, e.ID)
	t.touched[watchKey{WatchJobEvals, JobKey(e.Namespace, e.JobID)}] = struct{}{}
}

// PutDeployment stores the deployment.
func (t *Txn) PutDeployment(d *drover.Deployment) {
	t.insert(TableDeployments, d)
	t.touch(TableDeployments, d.ID)
	t.touched[watchKey{TableDeployments, JobKey(d.Namespace, d.JobID)}] = struct{}{}
}

// DeleteDeployment forgets the deployment.
func (t *Txn) DeleteDeployment(d *drover.Deployment) {
	t.remove(TableDeployments, d)
	t.touch(TableDeployments, d.ID)
	t.touched[watchKey{TableDeployments, JobKey(d.Namespace, d.JobID)}] = struct{}{}
}

// PutNamespace stores the namespace.
func (t *Txn) PutNamespace(n *drover.Namespace) {
	t.insert(TableNamespaces, n)
	t.touch(TableNamespaces, n.Name)
}

// DeleteNamespace forgets the namespace.
func (t *Txn) DeleteNamespace(n *drover.Namespace) {
	t.remove(TableNamespaces, n)
	t.touch(TableNamespaces, n.Name)
}

// PutNodePool stores the node pool.
func (t *Txn) PutNodePool(p *drover.NodePool) {
	t.insert(TableNodePools, p)
	t.touch(TableNodePools, p.Name)
}

// DeleteNodePool forgets the node pool.
func (t *Txn) DeleteNodePool(p *drover.NodePool) {
	t.remove(TableNodePools, p)
	t.touch(TableNodePools, p.Name)
}

// PutSchedulerConfig stores the scheduler's configuration.
func (t *Txn) PutSchedulerConfig(c *drover.SchedulerConfiguration) {
	t.insert(TableSchedulerConfig, c)
	t.touch(TableSchedulerConfig, "")
}

func (t *Txn) putBuiltins() {
	t.insert(TableNamespaces, &drover.Namespace{
		Name: drover.DefaultNamespace, Description: "Default shared namespace",
	})
	t.insert(TableNodePools, &drover.NodePool{Name: drover.DefaultNodePool, Description: "Default node pool."})
	t.insert(TableNodePools, &drover.NodePool{Name: drover.AllNodePool, Description: "Node pool with all nodes in the cluster."})
	t.insert(TableSchedulerConfig, &drover.SchedulerConfiguration{
		SchedulerAlgorithm: drover.SchedulerBinpack,
		PreemptionConfig:   drover.PreemptionConfig{SystemSchedulerEnabled: true},
	})
}
