package ec2

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// Config is what a Provider is made with.
type Config struct {
	// Region, such as eu-central-1. Required.
	Region string
	// Endpoint of the API. Default https://ec2.REGION.amazonaws.com.
	Endpoint string
	// Owner is whose machines are listed. Required.
	Owner string
	// Others are further owners whose machines are listed.
	Others []string
	// Subnets by zone. A zone without one gets the account's default.
	Subnets map[string]string
	// SecurityGroups by id. Default: that of the subnet's network.
	SecurityGroups []string
	// InstanceProfile of the machines, by name or ARN.
	InstanceProfile string
	// KeyName of an ssh key pair that machines accept.
	KeyName string
	// RootDevice is the image's, such as /dev/xvda: with it the root disk is made as large as the offering's disk.
	RootDevice string
	// PublicAddress tells machines' public addresses instead of private ones.
	PublicAddress bool
	// PerSecond bounds our own calls that create; 0 = what Amazon allows, and what it answers.
	PerSecond float64
	// Credentials are asked for before each call. Required; see Static and Chain. A provider that has a method Invalidate()
	// is told when those that it gave were refused as expired.
	Credentials Credentials
	// HTTP makes the calls. Default: a client that gives up after 30 s.
	HTTP *http.Client
}

// Validate reports everything that is wrong. Errors: Invalid, each with its field.
func (c *Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, drover.Errorf(drover.Invalid, "ec2: "+format, args...))
		}
	}
	check(c.Region != "", "region: must be set, for example eu-central-1")
	check(c.Owner != "", "owner: must be set")
	check(c.Credentials != nil, "credentials: must be set")
	if c.Endpoint != "" {
		u, err := url.Parse(c.Endpoint)
		check(err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http"), "endpoint: must be a URL, got %q", c.Endpoint)
	}
	return errors.Join(errs...)
}

// Amazon's bounds.
const (
	userDataMax = 16 << 10 // before base64
	pageSize    = 1000
	// batch is how many machines a call makes at most: their tokens are all in the user data that they share.
	batch       = 50
	callTimeout = 30 * time.Second
	// connections are kept for the next calls: a burst of creates needs one each.
	connections = 64
	// visible is how late a machine may come into lists; Amazon promises nothing, and is mostly within seconds.
	visible = 30 * time.Second
)

// Provider buys machines.
type Provider struct {
	cfg    Config
	clock  clock.Clock
	calls  *caller
	limits backoffs

	mu    sync.Mutex
	fresh map[string]time.Time // machines that we made lately, which calls may not find yet; guarded by mu
}

// New returns a provider. No I/O: wrong credentials are told by the first call. Errors: Invalid.
func New(cfg Config, c clock.Clock) (*Provider, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	domain := ".amazonaws.com"
	if strings.HasPrefix(cfg.Region, "cn-") {
		domain += ".cn"
	}
	cfg.Endpoint = cmp.Or(strings.TrimSuffix(cfg.Endpoint, "/"), "https://ec2."+cfg.Region+domain)
	if cfg.HTTP == nil {
		cfg.HTTP = &http.Client{Timeout: callTimeout, Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: connections, IdleConnTimeout: time.Minute,
		}}
	}
	return &Provider{cfg: cfg, clock: c, calls: &caller{cfg: &cfg, clock: c, signer: v4.NewSigner()}, fresh: map[string]time.Time{}}, nil
}

// Capabilities implements provider.Provider. The rates are Amazon's for an account that asked for no more.
func (p *Provider) Capabilities() provider.Capabilities {
	calls, machines := provider.Rate{PerSecond: 2, Burst: 5}, provider.Rate{PerSecond: 2, Burst: 1000}
	if p.cfg.PerSecond > 0 {
		calls = provider.Rate{PerSecond: p.cfg.PerSecond, Burst: max(1, p.cfg.PerSecond)}
		machines.PerSecond = max(machines.PerSecond, p.cfg.PerSecond)
	}
	return provider.Capabilities{
		Idempotent: true, Batch: batch, Shared: true, Visible: visible, UserDataMax: userDataMax, Reprices: true,
		Interrupts: true, // the machines' agents ask for notices
		Creates:    calls,
		Rates: map[provider.Call]provider.Rate{
			provider.CallCreate:  machines,
			provider.CallDestroy: {PerSecond: 5, Burst: 100},
			provider.CallList:    {PerSecond: 20, Burst: 100},
			provider.CallTag:     {PerSecond: 10, Burst: 100},
		},
	}
}

var (
	_ provider.Provider = (*Provider)(nil)
	_ provider.Consoler = (*Provider)(nil)
)
