package self

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/internal/version"
)

// Checkup is what this server says of itself. Errors: NotImplemented of an agent that is no server.
func (i Info) Checkup() (cluster.Checkup, error) {
	if i.deps.Control == nil {
		return cluster.Checkup{}, drover.Errorf(drover.NotImplemented, "this agent is a node only: name a server with server_id")
	}
	c := i.deps.Control
	self, stats, disk := c.Servers.Member(), c.Log.Stats(), c.Log.Writes()
	leader, _ := c.Servers.Leader()
	out := cluster.Checkup{
		ID: self.ID, Name: self.FullName(), Region: self.Region, Version: version.Version, Now: i.deps.Clock.Now(),
		Leader: leader.ID, LastContact: c.Log.LastContact(), LastIndex: stats.LastIndex, Applied: stats.AppliedIndex, Sick: stats.Sick,
		Refused: c.Servers.Refused(), Writes: cluster.Writes(disk), Certificates: i.certificates(), Settings: i.deps.Config.Alike(),
	}
	if state := c.Store.Snapshot().Cluster(); state != nil {
		out.Cluster = state.ID
	}
	if c.Locked != nil {
		out.Locked = c.Locked()
	}
	if i.deps.Pools != nil {
		out.Pools = i.deps.Pools()
	}
	return out, nil
}

// certificates are those that the agent shows and trusts, as they are in their files now. One that the server renews itself, at half of
// its time, is told of only if it did not.
func (i Info) certificates() []cluster.Certificate {
	out := []cluster.Certificate{}
	t := i.deps.Config.TLS
	if t == nil {
		return out
	}
	if pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile); err == nil { // what cannot be read is told where it is used
		left := pair.Leaf.NotAfter.Sub(i.deps.Clock.Now())
		if !optional.Value(t.Auto) || left < pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore)/3 {
			out = append(out, cluster.Certificate{File: t.CertFile, Ends: pair.Leaf.NotAfter})
		}
	}
	text, _ := os.ReadFile(t.CAFile) // as above
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			out = append(out, cluster.Certificate{File: t.CAFile, Ends: cert.NotAfter})
		}
	}
	return out
}
