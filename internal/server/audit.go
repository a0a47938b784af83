package server

import (
	"github.com/drover-project/drover/internal/server/auditing"
	"github.com/drover-project/drover/internal/server/survey"
)

// record is the record of this agent's requests.
func (a *Agent) record() auditing.Record { return auditing.Record{Config: a.cfg, DataDir: a.dataDir} }

// refusals records who was refused where no face is.
func (a *Agent) refusals() auditing.Refusals { return auditing.Refusals{Log: a.audit} }

// survey asks all servers of the region, and lets them ask this one.
func (a *Agent) survey() *survey.Survey {
	return survey.New(survey.Deps{
		Servers: a.control.servers, Raft: a.control.servers.Operate().Raft, Checkup: a.info().Checkup, Record: a.record().Read,
		Clock: a.deps.Clock,
	})
}
