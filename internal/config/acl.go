package config

import (
	"cmp"
	"net/netip"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/netguard"
	"github.com/drover-project/drover/internal/optional"
)

// ACL is access control: tokens, policies and roles. It is on or off at all agents of a region alike.
type ACL struct {
	Enabled *bool `hcl:"enabled,optional"` // ask every caller for a token, and do what its policies allow; default false
	// how long an agent without server goes on with what a server told it of a token; duration; default 30s
	TokenTTL string `hcl:"token_ttl,optional"`
	// the same for a token's policies, so that the shortest of the three counts; duration; default 30s
	PolicyTTL string `hcl:"policy_ttl,optional"`
	RoleTTL   string `hcl:"role_ttl,optional"` // the same for a token's roles; duration; default 30s
	// shortest life that a token with an end may be given; duration; default 1m
	TokenMinTTL string `hcl:"token_min_expiration_ttl,optional"`
	// longest life that a token with an end may be given; duration; default 24h
	TokenMaxTTL string `hcl:"token_max_expiration_ttl,optional"`
	// special networks and addresses where identity providers of auth methods may be: loopback, link-local, the machine's own;
	// CIDR; default: the Internet and private networks
	LoginAllow []string `hcl:"login_allow,optional"`
	// management token of server.authoritative_region, with which this region's servers copy policies, roles, global tokens, auth methods
	// and binding rules from there; must be set where access control is on and another region is the authoritative one; default none
	ReplicationToken string   `hcl:"replication_token,optional"`
	Rest             hcl.Body `hcl:",remain" json:"-"`
}

// rememberTokens is how long a token is remembered where nobody says otherwise.
const rememberTokens = 30 * time.Second

// AccessControl reports whether access control is on.
func (a *Agent) AccessControl() bool { return optional.Value(a.access().Enabled) }

// Guarded reports whether the faces ask for a token.
func (a *Agent) Guarded() bool { return a.APIToken != "" || a.AccessControl() }

// TokenTTLs are the bounds of the lives of tokens.
func (a *Agent) TokenTTLs() acl.TTLBounds {
	c := a.access()
	return acl.TTLBounds{
		Min: Duration(c.TokenMinTTL, acl.DefaultTTLBounds.Min), Max: Duration(c.TokenMaxTTL, acl.DefaultTTLBounds.Max),
	}
}

// ReplicationToken is with what this region copies access control from the authoritative one; "" = it does not.
func (a *Agent) ReplicationToken() acl.Secret {
	if !a.AccessControl() || a.Authority() == "" {
		return ""
	}
	return acl.Secret(a.access().ReplicationToken)
}

// LoginAllow are the special networks where identity providers may be.
func (a *Agent) LoginAllow() []netip.Prefix {
	list, _ := netguard.Networks(a.access().LoginAllow) // Validate told of it
	return list
}

// RememberTokens is how long an agent without server goes on with what a server told it of a token.
func (a *Agent) RememberTokens() time.Duration {
	c := a.access()
	return min(Duration(c.TokenTTL, rememberTokens), Duration(c.PolicyTTL, rememberTokens), Duration(c.RoleTTL, rememberTokens))
}

func (a *Agent) access() *ACL { return cmp.Or(a.ACL, &ACL{}) }

// shownACL is access control under the names that Nomad's clients know.
func (a *Agent) shownACL() map[string]any {
	ttls, c := a.TokenTTLs(), a.access()
	return map[string]any{
		"Enabled": a.AccessControl(), "TokenTTL": Duration(c.TokenTTL, rememberTokens), "PolicyTTL": Duration(c.PolicyTTL, rememberTokens),
		"RoleTTL": Duration(c.RoleTTL, rememberTokens), "TokenMinExpirationTTL": ttls.Min, "TokenMaxExpirationTTL": ttls.Max,
		"ReplicationToken": c.ReplicationToken,
	}
}

// accessProblems are those of access control.
func (a *Agent) accessProblems(p *problems) {
	_, err := netguard.Networks(a.access().LoginAllow)
	p.check(err == nil, "acl.login_allow", "%v", err)
	ttls := a.TokenTTLs()
	p.check(ttls.Min <= ttls.Max, "acl.token_min_expiration_ttl",
		"must not be above token_max_expiration_ttl, got %s and %s", ttls.Min, ttls.Max)
	follows := a.AccessControl() && a.Authority() != "" && optional.Value(a.Server.Enabled)
	p.check(!follows || a.access().ReplicationToken != "", "acl.replication_token",
		"missing: policies, roles and global tokens are those of region %q: make a management token there (acl token create -type management)",
		a.Server.AuthoritativeRegion)
}
