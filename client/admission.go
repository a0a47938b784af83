package client

import (
	"context"
	"net/http"

	"github.com/drover-project/drover"
)

// AdmissionRules lists the admission rules, by name. Errors: Forbidden without operator:read.
func (c *Client) AdmissionRules(ctx context.Context) (rules []drover.AdmissionRule, err error) {
	_, err = c.call(ctx, http.MethodGet, []string{"admission", "rules"}, nil, nil, &rules)
	return rules, err
}

// AdmissionRule returns one. Errors: NotFound; Forbidden without operator:read.
func (c *Client) AdmissionRule(ctx context.Context, name string) (rule drover.AdmissionRule, err error) {
	_, err = c.call(ctx, http.MethodGet, []string{"admission", "rule", name}, nil, nil, &rule)
	return rule, err
}

// PutAdmissionRule makes the rule, or replaces the one of its name. Errors: Invalid with line and column; Forbidden without operator:write.
func (c *Client) PutAdmissionRule(ctx context.Context, rule drover.AdmissionRule) error {
	_, err := c.call(ctx, http.MethodPut, []string{"admission", "rule", rule.Name}, nil, rule, nil)
	return err
}

// DeleteAdmissionRule deletes a rule. Errors: NotFound; Forbidden without operator:write.
func (c *Client) DeleteAdmissionRule(ctx context.Context, name string) error {
	_, err := c.call(ctx, http.MethodDelete, []string{"admission", "rule", name}, nil, nil, nil)
	return err
}

// TestAdmission says which rules, of every level, are against the job if this client registers it. Nothing is stored. Errors: Invalid;
// Forbidden for who may not plan the job.
func (c *Client) TestAdmission(ctx context.Context, job *drover.Job) ([]drover.AdmissionVerdict, error) {
	var out struct{ Verdicts []drover.AdmissionVerdict }
	_, err := c.call(ctx, http.MethodPut, []string{"admission", "test"}, nil, struct{ Job *drover.Job }{job}, &out)
	return out.Verdicts, err
}
