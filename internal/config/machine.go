package config

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/hashicorp/hcl/v2"
)

// Machine is what an agent does for the machine that it runs on, beside its work: fleets set it for those they buy.
type Machine struct {
	BootProbe string `hcl:"boot_probe,optional"` // shell command that must succeed before the node registers
	RunProbe  string `hcl:"run_probe,optional"`  // shell command; no new work is placed while it fails
	// give the machine up when no server answered for so long and nothing runs; duration; default never
	DeadAfter string `hcl:"dead_after,optional"`
	DeadBusy  string `hcl:"dead_after_busy,optional"` // the same while work runs; duration; default never
	// command that ends the machine; default: work is stopped, and the agent ends
	PowerOff    []string `hcl:"power_off,optional"`
	ProbeEvery  string   `hcl:"probe_interval,optional"` // interval of the run probe; duration; default 10s
	ProbeWithin string   `hcl:"probe_timeout,optional"`  // time limit of both probes; duration; default 30s
	// EC2's metadata service, which tells when a spot machine is taken back: "http://169.254.169.254"; URL; default:
	// nobody is asked
	Notices string `hcl:"notices,optional"`
	// PEM of the authority of the server's certificate: the agent gets a certificate for its join token, and links are
	// mutual TLS
	Authority string `hcl:"authority,optional"`
	// join tokens of machines that share this configuration, by launch index, which metadata tells
	Tokens []string `hcl:"join_tokens,optional"`
	// EC2's metadata service, which tells the launch index: "http://169.254.169.254"; URL
	Metadata string   `hcl:"metadata,optional"`
	Rest     hcl.Body `hcl:",remain" json:"-"`
}

// problems lists what is wrong with the block, each with its key.
func (m *Machine) problems() (errs []error) {
	if m == nil {
		return nil
	}
	for key, text := range map[string]string{
		"dead_after": m.DeadAfter, "dead_after_busy": m.DeadBusy, "probe_interval": m.ProbeEvery, "probe_timeout": m.ProbeWithin,
	} {
		if d, err := time.ParseDuration(text); text != "" && (err != nil || d < 0) {
			errs = append(errs, fmt.Errorf("client.machine.%s: %q is no duration such as 10s or 1h", key, text))
		}
	}
	for key, text := range map[string]string{"notices": m.Notices, "metadata": m.Metadata} {
		if u, err := url.Parse(text); text != "" && (err != nil || u.Host == "") {
			errs = append(errs, fmt.Errorf("client.machine.%s: %q is no URL such as http://169.254.169.254", key, text))
		}
	}
	if len(m.Tokens) > 0 && m.Metadata == "" {
		errs = append(errs, errors.New("client.machine.metadata: must be set with join_tokens: it tells which of them is this machine's"))
	}
	return errs
}
