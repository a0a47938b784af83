package clouds

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/drover-project/drover/internal/optional"
)

// Names are the clouds, as Nomad calls what asks them; OpenStack's is ours.
func Names() []string {
	return []string{"env_aws", "env_azure", "env_digitalocean", "env_gce", "env_openstack"}
}

// Fingerprint says how stubbornly a cloud's metadata service is asked about the machine: env_aws, env_azure, env_digitalocean, env_gce or
// env_openstack. One is asked only where the machine's firmware, or a variable of the agent's environment such as AWS_ENV_URL, names the
// cloud, and a node without allocations does not wait for it.
type Fingerprint struct {
	Name          string   `hcl:"name,label"`
	RetryInterval string   `hcl:"retry_interval,optional"`  // rest before it is asked again that did not answer; duration; default 2s
	RetryAttempts *int     `hcl:"retry_attempts,optional"`  // further tries after the first; -1 is no end; default 3
	ExitOnFailure *bool    `hcl:"exit_on_failure,optional"` // the agent ends if all of them failed; default false
	Rest          hcl.Body `hcl:",remain" json:"-"`
}

const (
	defaultInterval = 2 * time.Second
	defaultAttempts = 3
)

// Retry is what the blocks say of a cloud.
func Retry(blocks []*Fingerprint, name string) (attempts int, interval time.Duration, exit bool) {
	attempts, interval = defaultAttempts, defaultInterval
	for _, f := range blocks {
		if f.Name != name {
			continue
		}
		if d, err := time.ParseDuration(f.RetryInterval); err == nil {
			interval = d
		}
		attempts, exit = optional.Or(f.RetryAttempts, attempts), optional.Value(f.ExitOnFailure)
	}
	return attempts, interval, exit
}

// Problems are those of the blocks and of the options about them.
func Problems(blocks []*Fingerprint, options map[string]string) (errs []error) {
	for _, f := range blocks {
		at := "client.fingerprint." + f.Name
		if !slices.Contains(Names(), f.Name) {
			errs = append(errs, fmt.Errorf("%s: there is no such cloud: use %s", at, strings.Join(Names(), ", ")))
		}
		if d, err := time.ParseDuration(f.RetryInterval); f.RetryInterval != "" && (err != nil || d <= 0) {
			errs = append(errs, fmt.Errorf("%s.retry_interval: %q is no duration above 0s such as 10s", at, f.RetryInterval))
		}
		if n := optional.Value(f.RetryAttempts); n < -1 {
			errs = append(errs, fmt.Errorf("%s.retry_attempts: must be -1 or more, got %d", at, n))
		}
	}
	for _, name := range listed(options, "fingerprint", "denylist", "blacklist") {
		if !slices.Contains(append(Names(), "consul", "vault"), name) {
			errs = append(errs, fmt.Errorf("client.options: fingerprint.denylist names %q, which a node is never without: only %s can be left out",
				name, strings.Join(Names(), ", ")))
		}
	}
	return errs
}
