package acl

import (
	"slices"

	"github.com/drover-project/drover/internal/validation"
)

// AnonymousPolicy is the name of the policy whose rules hold for requests without a token.
const AnonymousPolicy = "anonymous"

// Policy is named rules. Rules is in the policy language, HCL or JSON.
type Policy struct {
	Name        string
	Description string
	Rules       string
	JobACL      *JobACL
	Hash        []byte `json:",omitempty"` // of what the policy says
	CreateIndex uint64
	ModifyIndex uint64
}

// JobACL binds a policy to a job's workloads. Each field that is set narrows it; Group needs JobID, and Task needs Group.
type JobACL struct {
	Namespace string
	JobID     string
	Group     string
	Task      string
}

// PolicyStub is a policy in a list. It has no rules.
type PolicyStub struct {
	Name        string
	Description string
	JobACL      *JobACL
	Hash        []byte `json:",omitempty"`
	CreateIndex uint64
	ModifyIndex uint64
}

// Stub returns the policy as lists have it.
func (p *Policy) Stub() *PolicyStub {
	return &PolicyStub{
		Name: p.Name, Description: p.Description, JobACL: p.JobACL, Hash: p.Hash, CreateIndex: p.CreateIndex, ModifyIndex: p.ModifyIndex,
	}
}

// Copy returns a policy of which every part may be changed.
func (p *Policy) Copy() *Policy {
	c := *p
	c.Hash = slices.Clone(p.Hash)
	if p.JobACL != nil {
		c.JobACL = new(*p.JobACL)
	}
	return &c
}

// Canonicalize gives a policy that is bound to a job, without saying of which namespace, the default one.
func (p *Policy) Canonicalize() {
	if p.JobACL != nil && *p.JobACL == (JobACL{}) {
		p.JobACL = nil
	}
	if p.JobACL != nil && p.JobACL.Namespace == "" {
		p.JobACL.Namespace = "default"
	}
}

// Validate reports everything that is wrong with the policy but its rules, which package policy parses. Errors: Invalid.
func (p *Policy) Validate() error {
	v := &validation.Report{}
	name(v, "Name", p.Name)
	text(v, "Description", p.Description, MaxDescription)
	text(v, "Rules", p.Rules, MaxRules)
	if j := p.JobACL; j != nil {
		v.Check(j.JobID != "" || j.Group == "", "JobACL.Group", "needs JobACL.JobID: name the job whose group it is")
		v.Check(j.JobID != "", "JobACL.JobID", "name the job that the policy is bound to, or leave JobACL out")
		v.Check(j.Group != "" || j.Task == "", "JobACL.Task", "needs JobACL.Group: name the group whose task it is")
	}
	return invalid("policy", v)
}
