package config

import (
	"cmp"
	"time"

	"github.com/hashicorp/hcl/v2"
)

// Introduction says how machines become nodes. All servers of a region have the same.
type Introduction struct {
	// what becomes of nodes that show the join token, or a certificate alone: strict refuses them, warn logs them, none lets them in;
	// default none
	Enforcement string `hcl:"enforcement,optional"`
	// how long an introduction token is good where nobody says otherwise; duration; default 5m
	DefaultTTL string `hcl:"default_identity_ttl,optional"`
	// how long one can be good at most; duration; default 30m
	MaxTTL string   `hcl:"max_identity_ttl,optional"`
	Rest   hcl.Body `hcl:",remain" json:"-"`
}

// What Introduction.Enforcement can be.
const (
	IntroductionNone   = "none"
	IntroductionWarn   = "warn"
	IntroductionStrict = "strict"
)

// IntroductionPolicy is what becomes of nodes that were not introduced.
func (a *Agent) IntroductionPolicy() string {
	return cmp.Or(a.introduction().Enforcement, IntroductionNone)
}

// IntroductionTTLs are how long introduction tokens are good, and at most.
func (a *Agent) IntroductionTTLs() (usual, most time.Duration) {
	i := a.introduction()
	return Duration(i.DefaultTTL, 5*time.Minute), Duration(i.MaxTTL, 30*time.Minute)
}

func (a *Agent) introduction() *Introduction { return cmp.Or(a.Server.Introduction, &Introduction{}) }

// introductionProblems are those of the block.
func (a *Agent) introductionProblems(p *problems) {
	switch is := a.IntroductionPolicy(); is {
	case IntroductionNone, IntroductionWarn, IntroductionStrict:
	default:
		p.check(false, "server.client_introduction.enforcement", "must be none, warn or strict, got %q", is)
	}
	usual, most := a.IntroductionTTLs()
	p.check(usual > 0 && usual <= most, "server.client_introduction.default_identity_ttl",
		"must be above 0 and not above max_identity_ttl, got %s and %s", usual, most)
}
