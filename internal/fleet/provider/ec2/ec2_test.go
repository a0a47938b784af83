package ec2_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/provider/ec2"
	"github.com/drover-project/drover/internal/fleet/provider/ec2/ec2test"
	"github.com/drover-project/drover/internal/fleet/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var keys = ec2.Static(ec2test.AccessKey, ec2test.SecretKey) // a constant

func offering(typ, market string) fleet.Offering {
	return fleet.Offering{
		Key: fleet.OfferingKey("ec2", typ, "eu-test-1a", market), Provider: "ec2", Type: typ, Zone: "eu-test-1a", Market: market,
		Capacity: drover.Capacity{CPU: 2000, MemoryMB: 4096, DiskMB: 20 << 10}, Price: 0.1, QuotaGroup: "standard", QuotaUnits: 2,
	}
}

// client makes no connections that outlive it.
func client(t *testing.T) *http.Client {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: time.Minute}
}

func account(t *testing.T, c *ec2test.Cloud, owner string, change ...func(*ec2.Config)) *ec2.Provider {
	t.Helper()
	cfg := ec2.Config{Region: ec2test.Region, Endpoint: c.URL, Owner: owner, Credentials: keys, HTTP: client(t)}
	for _, f := range change {
		f(&cfg)
	}
	p, err := ec2.New(cfg, clock.Wall{})
	require.NoError(t, err)
	return p
}

func TestConformance(t *testing.T) {
	t.Parallel()
	c := ec2test.New(t)
	c.With(func(c *ec2test.Cloud) { c.Delay, c.PageMost = 20*time.Second, 5 })
	providertest.Run(t, providertest.Harness{
		New:      func(t *testing.T, owner string) provider.Provider { return account(t, c, owner) },
		Beside:   func(t *testing.T, _ provider.Provider, owner string) provider.Provider { return account(t, c, owner) },
		Offering: offering("m5.large", fleet.MarketOnDemand), Image: "ami-1", Wait: c.Pass,
		Scarce: func(t *testing.T, owner string) providertest.Scarce {
			scarce := ec2test.New(t)
			scarce.With(func(c *ec2test.Cloud) { c.Quota["m5.large"], c.SoldOut["c5.large"] = -1, true })
			return providertest.Scarce{
				Provider: account(t, scarce, owner), Quota: offering("m5.large", fleet.MarketOnDemand),
				Capacity: offering("c5.large", fleet.MarketOnDemand), Group: "standard",
			}
		},
	})
}

func request(intent string, o fleet.Offering) provider.Request {
	return provider.Request{
		Offering: o, Image: "ami-1", Tags: map[string]string{fleet.TagOwner: "me", fleet.TagPool: "web"},
		Intents: []provider.Intent{{ID: intent, UserData: "#!/bin/sh\necho " + intent, Tags: map[string]string{fleet.TagIntent: intent}}},
	}
}

func TestWhatIsOrdered(t *testing.T) {
	t.Parallel()
	c := ec2test.New(t)
	p := account(t, c, "me", func(cfg *ec2.Config) {
		cfg.Subnets, cfg.SecurityGroups = map[string]string{"eu-test-1a": "subnet-7"}, []string{"sg-1", "sg-2"}
		cfg.InstanceProfile, cfg.KeyName, cfg.RootDevice = "worker", "ops", "/dev/xvda"
	})
	made, err := p.Create(t.Context(), request("a", offering("m5.large", fleet.MarketSpot)))
	require.NoError(t, err)
	require.Equal(t, fleet.MarketSpot, made[0].Market)
	got := c.Instances()[0]
	require.Equal(t, "#!/bin/sh\necho a", got.UserData)
	require.Equal(t, "spot", got.Market)
	for key, want := range map[string]string{
		"SubnetId": "subnet-7", "SecurityGroupId.2": "sg-2", "IamInstanceProfile.Name": "worker", "KeyName": "ops",
		"InstanceInitiatedShutdownBehavior": "terminate", "MetadataOptions.HttpTokens": "required",
		"BlockDeviceMapping.1.Ebs.VolumeSize": "20", "BlockDeviceMapping.1.Ebs.DeleteOnTermination": "true",
		"InstanceMarketOptions.SpotOptions.SpotInstanceType": "one-time", "TagSpecification.2.ResourceType": "volume",
	} {
		require.Equal(t, want, got.Form[key], key)
	}
	text, err := p.Console(t.Context(), made[0].ID)
	require.NoError(t, err)
	require.Contains(t, string(text), made[0].ID)
}

// Every code has a meaning; calls that were cut off may have happened, those that were never sent did not.
func TestErrors(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]provider.Error{
		"InsufficientInstanceCapacity":      {Kind: provider.Capacity, Scope: provider.ScopeOffering},
		"UnfulfillableCapacity":             {Kind: provider.Capacity, Scope: provider.ScopeOffering},
		"Unsupported":                       {Kind: provider.Capacity, Scope: provider.ScopeOffering},
		"InsufficientFreeAddressesInSubnet": {Kind: provider.Capacity, Scope: provider.ScopeZone},
		"MaxSpotInstanceCountExceeded":      {Kind: provider.Quota, Group: "standard"},
		"VcpuLimitExceeded":                 {Kind: provider.Quota, Group: "standard"},
		"InstanceLimitExceeded":             {Kind: provider.Quota, Group: "standard"},
		"SomethingNewLimitExceeded":         {Kind: provider.Quota, Group: "standard"},
		"RequestLimitExceeded":              {Kind: provider.RateLimited},
		"Throttling":                        {Kind: provider.RateLimited},
		"UnauthorizedOperation":             {Kind: provider.Auth},
		"AuthFailure":                       {Kind: provider.Auth},
		"OptInRequired":                     {Kind: provider.Auth},
		"InvalidAMIID.NotFound":             {Kind: provider.Config},
		"InvalidSubnetID.NotFound":          {Kind: provider.Config},
		"IdempotentParameterMismatch":       {Kind: provider.Ambiguous},
		"IdempotentInstanceTerminated":      {Kind: provider.NotFound},
		"InternalError":                     {Kind: provider.Ambiguous},
		"Unavailable":                       {Kind: provider.Ambiguous},
		"":                                  {Kind: provider.Ambiguous},
	} {
		t.Run("code "+code, func(t *testing.T) {
			t.Parallel()
			c := ec2test.New(t)
			c.Fail("RunInstances", ec2test.Fault{Code: code})
			_, err := account(t, c, "me").Create(t.Context(), request("a", offering("m5.large", fleet.MarketOnDemand)))
			var e *provider.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, want.Kind, e.Kind, "%v", err)
			require.Equal(t, want.Scope, e.Scope)
			require.Equal(t, want.Group, e.Group)
			if code != "" {
				require.ErrorContains(t, err, code)
				require.ErrorContains(t, err, "m5.large on-demand in eu-test-1a")
			}
		})
	}
}

func TestACreateWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	c := ec2test.New(t)
	p := account(t, c, "me")
	c.Fail("RunInstances", ec2test.Fault{After: true})
	r := request("a", offering("m5.large", fleet.MarketOnDemand))
	_, err := p.Create(t.Context(), r)
	require.Equal(t, provider.Ambiguous, provider.KindOf(err))
	made, err := p.Create(t.Context(), r)
	require.NoError(t, err)
	require.Len(t, c.Instances(), 1)
	require.Equal(t, c.Instances()[0].ID, made[0].ID)
	r.Offering.Type = "c5.large"
	_, err = p.Create(t.Context(), r)
	require.ErrorContains(t, err, "IdempotentParameterMismatch")
}

// Throttled calls say when to try again: later each time, and not before what the answer says.
func TestThrottling(t *testing.T) {
	t.Parallel()
	c := ec2test.New(t)
	p := account(t, c, "me")
	c.Throttle("TerminateInstances", 1, 1)
	made, err := p.Create(t.Context(), request("a", offering("m5.large", fleet.MarketOnDemand)))
	require.NoError(t, err)
	wait := func() time.Duration {
		err := p.Destroy(t.Context(), made[0].ID)
		var e *provider.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, provider.RateLimited, e.Kind)
		return time.Until(e.RetryAt).Round(500 * time.Millisecond)
	}
	require.NoError(t, p.Destroy(t.Context(), made[0].ID))
	require.Equal(t, time.Second, wait())
	require.Equal(t, 2500*time.Millisecond, wait())
	c.Pass(time.Second)
	require.NoError(t, p.Destroy(t.Context(), made[0].ID))
	require.Equal(t, time.Second, wait())
	c.Fail("TerminateInstances", ec2test.Fault{Status: 503, Code: "Busy", Retry: 30})
	require.Equal(t, 30*time.Second, wait())
	_, _, err = p.List(t.Context(), "")
	require.NoError(t, err, "other calls have their own bucket")
}

func TestAnUnreachableCloud(t *testing.T) {
	t.Parallel()
	c := ec2test.New(t)
	p := account(t, c, "me", func(cfg *ec2.Config) { cfg.Endpoint = "http://127.0.0.1:1" })
	_, err := p.Create(t.Context(), request("a", offering("m5.large", fleet.MarketOnDemand)))
	require.Equal(t, provider.Transient, provider.KindOf(err), "nothing was sent: %v", err)
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	_, err := ec2.New(ec2.Config{Endpoint: "nowhere"}, clock.Wall{})
	for _, field := range []string{"region", "owner", "credentials", "endpoint"} {
		require.ErrorContains(t, err, field)
	}
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
}

// A thousand machines take pages; a page that fails is told, so that nobody takes the list for whole.
func TestPages(t *testing.T) {
	t.Parallel()
	c := ec2test.New(t)
	p := account(t, c, "me")
	for n := range 23 {
		_, err := p.Create(t.Context(), request(fmt.Sprint(n), offering("m5.large", fleet.MarketOnDemand)))
		require.NoError(t, err)
	}
	c.With(func(c *ec2test.Cloud) { c.PageMost = 10 })
	seen := map[string]bool{}
	pages := 0
	for page := ""; ; pages++ {
		list, next, err := p.List(t.Context(), page)
		require.NoError(t, err)
		for _, m := range list {
			seen[m.Intent] = true
		}
		if page = next; next == "" {
			break
		}
	}
	require.Len(t, seen, 23)
	require.Equal(t, 2, pages)
	c.Fail("DescribeInstances", ec2test.Fault{})
	_, _, err := p.List(context.Background(), "10")
	require.Error(t, err)
}

// A machine that was just made may not be found. It is there, and costs.
func TestAMachineThatIsNotFoundYet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // no network: the cloud is a function
		found := false
		cloud := roundTrip(func(r *http.Request) (*http.Response, error) {
			body, status := `<Response><Errors><Error><Code>InvalidInstanceID.NotFound</Code></Error></Errors></Response>`, 400
			require.NoError(t, r.ParseForm())
			switch {
			case r.Form.Get("Action") == "RunInstances":
				status = 200
				body = `<RunInstancesResponse><instancesSet><item><instanceId>i-1</instanceId></item></instancesSet></RunInstancesResponse>`
			case found:
				body, status = `<TerminateInstancesResponse/>`, 200
			}
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
		})
		p, err := ec2.New(ec2.Config{Region: "eu-central-1", Owner: "me", Credentials: keys, HTTP: &http.Client{Transport: cloud}}, clock.Wall{})
		require.NoError(t, err)
		_, err = p.Create(t.Context(), request("a", offering("m5.large", fleet.MarketOnDemand)))
		require.NoError(t, err)
		require.Equal(t, provider.Transient, provider.KindOf(p.Destroy(t.Context(), "i-1")))
		require.Equal(t, provider.NotFound, provider.KindOf(p.Destroy(t.Context(), "i-2")))
		found = true
		require.NoError(t, p.Destroy(t.Context(), "i-1"))
		found = false
		time.Sleep(time.Minute)
		require.Equal(t, provider.NotFound, provider.KindOf(p.Destroy(t.Context(), "i-1")))
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// BenchmarkList reads ten thousand machines.
func BenchmarkList(b *testing.B) {
	c := ec2test.New(b)
	p, err := ec2.New(ec2.Config{Region: ec2test.Region, Endpoint: c.URL, Owner: "me", Credentials: keys}, clock.Wall{})
	require.NoError(b, err)
	for n := range 10_000 {
		_, err := p.Create(b.Context(), request(fmt.Sprint(n), offering("m5.large", fleet.MarketOnDemand)))
		require.NoError(b, err)
	}
	for b.Loop() {
		seen := 0
		for page := ""; ; {
			list, next, err := p.List(b.Context(), page)
			require.NoError(b, err)
			if seen, page = seen+len(list), next; next == "" {
				break
			}
		}
		require.Equal(b, 10_000, seen)
	}
}
