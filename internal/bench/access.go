package bench

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/client/fastpath"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/cli/env"
)

// measuredAccess is what claims and cycles take.
type measuredAccess struct {
	claims []time.Duration
	rates  []float64 // cycles a minute, of each round
}

// access measures claims and cycles of a token that may only claim and execute, and without access control: in turns, as the machine is not
// the same at all times.
func (b *bench) access(ctx context.Context) error {
	defer func() { b.config = "" }()
	var without, with measuredAccess
	for range 3 {
		b.config = ""
		if err := b.with(ctx, func(ctx context.Context) error { return b.claimed(ctx, &without) }); err != nil {
			return err
		}
		b.config = "acl {\n  enabled = true\n}\n"
		if err := b.with(ctx, func(ctx context.Context) error { return b.claimedWithToken(ctx, &with) }); err != nil {
			return err
		}
	}
	open, closed := percentile(without.claims, 0.5), percentile(with.claims, 0.5)
	b.report("claim without access control p50", open, "ms", "", "")
	b.report("claim with a token p50", closed, "ms", "", "")
	b.report("access control of a claim p50", (closed-open)*1000, "µs", "≤ 5", "")
	before, after := median(without.rates), median(with.rates)
	b.report("whole cycles without access control", before, "a minute", "", "")
	b.report("whole cycles with a token", after, "a minute", "", "")
	b.report("access control of a cycle", 100*(before-after)/before, "%", "≤ 3", "")
	return nil
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// claimedWithToken is claimed with a token of just that. The environment is made by management.
func (b *bench) claimedWithToken(ctx context.Context, m *measuredAccess) error {
	var root, token acl.Token
	if err := b.api.Put(ctx, "/v1/acl/bootstrap", nil, nil, &root); err != nil {
		return err
	}
	b.api.Token = string(root.SecretID)
	rules := `namespace "default" {
  capabilities = ["read-runner", "write-environment", "claim-runner", "execute", "write-files", "read-files"]
}`
	if err := b.api.Put(ctx, "/v1/acl/policy/bench", nil, map[string]any{"Name": "bench", "Rules": rules}, nil); err != nil {
		return err
	}
	asked := map[string]any{"Name": "bench", "Type": acl.ClientToken, "Policies": []string{"bench"}}
	if err := b.api.Put(ctx, "/v1/acl/token", nil, asked, &token); err != nil {
		return err
	}
	h := client.WithHTTPClient(&http.Client{Transport: fastpath.New(nil)})
	c, err := client.New(b.addr, h, client.WithToken(string(token.SecretID)))
	if err != nil {
		return err
	}
	b.client = c
	return b.claimed(ctx, m)
}

// claimed adds claims, one at a time, and a round of cycles.
func (b *bench) claimed(ctx context.Context, m *measuredAccess) error {
	if err := b.environment(ctx, "bench", 100); err != nil {
		return err
	}
	for range b.n(300) {
		if err := env.AwaitWarm(ctx, b.client, "bench", 50); err != nil {
			return err
		}
		begin := b.now()
		r, err := b.client.Claim(ctx, execution.ClaimRequest{Environment: "bench"})
		if err != nil {
			return err
		}
		m.claims = append(m.claims, b.now().Sub(begin))
		if err := b.client.Release(ctx, r.ID); err != nil {
			return err
		}
	}
	total := int64(b.n(3000))
	took, _, err := b.cycled(ctx, total)
	m.rates = append(m.rates, float64(total)/took.Minutes())
	return err
}
