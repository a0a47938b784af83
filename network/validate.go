package network

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"github.com/drover-project/drover/internal/validation"
)

// Validate checks the networks of a group or a task. Labels and static ports are unique among them. A static
// port may be shared only if it says so, as tasks that bind with SO_REUSEPORT do.
func Validate(v *validation.Report, at string, networks []*Resource) {
	v.Check(len(networks) <= 1, at+".Networks", "only one network a group, got %d", len(networks))
	labels, statics := map[string]bool{}, map[int]string{}
	for i, n := range networks {
		if n == nil {
			v.Addf(fmt.Sprintf("%s.Networks[%d]", at, i), "must not be null")
			continue
		}
		validateMode(v, at, n)
		validateNames(v, at+".Networks", n)
		for _, p := range append(append([]Port{}, n.ReservedPorts...), n.DynamicPorts...) {
			where := fmt.Sprintf("%s.port[%s]", at, p.Label)
			v.Check(p.Label != "", at+".Networks", "a port has no label")
			v.Check(!labels[p.Label], where, "is defined twice")
			labels[p.Label] = true
			v.Check(p.Value >= 0 && p.Value <= 65535, where+".Value", "must be from 1 to 65535, got %d", p.Value)
			v.Check(p.To >= -1 && p.To <= 65535, where+".To", "must be from -1 to 65535, got %d", p.To)
		}
		for _, p := range n.ReservedPorts {
			where := fmt.Sprintf("%s.port[%s]", at, p.Label)
			v.Check(p.Value > 0, where+".Value", "a static port must be from 1 to 65535, got %d", p.Value)
			if other, taken := statics[p.Value]; taken && !p.IgnoreCollision {
				v.Addf(where, "static port %d is used by %q already", p.Value, other)
			}
			statics[p.Value] = p.Label
		}
	}
}

// cniPrefix begins the mode of a network that a node's administrator configured.
const cniPrefix = "cni/"

// CNIName returns the name of the configured network that the mode stands for; "" if it is another mode.
func (n *Resource) CNIName() string {
	name, ok := strings.CutPrefix(n.Mode, cniPrefix)
	if !ok {
		return ""
	}
	return name
}

// IsCNI reports whether the network is one that a node's administrator configured.
func IsCNI(n *Resource) bool { return n != nil && strings.HasPrefix(n.Mode, cniPrefix) }

// isCNIName reports whether CNI takes it for the name of a network. None of these is a regular expression, as each
// supervisor would compile it when it starts.
func isCNIName(s string) bool {
	return s != "" && strings.Contains(validation.Letters+validation.Digits, s[:1]) &&
		strings.Trim(s, validation.Letters+validation.Digits+"_.-") == ""
}

// isCNIKey reports whether CNI takes it for the name of an argument.
func isCNIKey(s string) bool {
	return s != "" && strings.Contains(validation.Letters+"_", s[:1]) && strings.Trim(s, validation.Letters+validation.Digits+"_.-") == ""
}

// isHostName reports whether the kernel and resolvers take it.
func isHostName(s string) bool {
	return s != "" && len(s) <= 63 && strings.Trim(s, validation.Letters+validation.Digits+".-") == "" &&
		strings.Contains(validation.Letters+validation.Digits, s[:1]) && strings.Contains(validation.Letters+validation.Digits, s[len(s)-1:])
}

// validateMode checks a network's mode and what belongs to it.
func validateMode(v *validation.Report, at string, n *Resource) {
	at += ".Networks"
	name, cni := strings.CutPrefix(n.Mode, cniPrefix)
	v.Check(cni || n.Mode == "host" || n.Mode == "bridge" || n.Mode == "none", at+".Mode",
		"must be host, bridge, none or cni/NAME, got %q", n.Mode)
	v.Check(!cni || len(name) <= 128 && isCNIName(name), at+".Mode",
		"the name behind cni/ must be letters, digits, dots, underscores and hyphens, got %q", name)
	if n.CNI == nil {
		return
	}
	v.Check(cni || len(n.CNI.Args) == 0, at+".CNI", "needs mode cni/NAME, got mode %q", n.Mode)
	for _, key := range slices.Sorted(maps.Keys(n.CNI.Args)) {
		if err := ValidCNIArg(key, n.CNI.Args[key]); err != nil {
			v.Addf(at+".CNI.Args", "%v", err)
		}
	}
}

// validateNames checks what a network says of names, as far as the node does not interpolate it.
func validateNames(v *validation.Report, at string, n *Resource) {
	open := func(text string) bool { return strings.Contains(text, "${") }
	v.Check(n.Hostname == "" || open(n.Hostname) || isHostName(n.Hostname), at+".Hostname",
		"must be up to 63 letters, digits, dots and hyphens, got %q", n.Hostname)
	if n.DNS == nil {
		return
	}
	for _, server := range n.DNS.Servers {
		_, err := netip.ParseAddr(server)
		v.Check(open(server) || err == nil, at+".DNS.Servers", "must be addresses, got %q", server)
	}
	for field, words := range map[string][]string{"Searches": n.DNS.Searches, "Options": n.DNS.Options} {
		for _, word := range words {
			odd := strings.ContainsFunc(word, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
			v.Check(open(word) || word != "" && !odd, at+".DNS."+field, "must be words without spaces, got %q", word)
		}
	}
}

// ValidCNIArg checks an argument of a job for CNI's plugins, which get all of them in one text. Those that say whose the network is are the
// node's alone: a plugin may decide by them.
func ValidCNIArg(key, value string) error {
	switch {
	case !isCNIKey(key):
		return fmt.Errorf("the name %q must be letters, digits, dots, underscores and hyphens", key)
	case strings.HasPrefix(strings.ToUpper(key), "NOMAD_"):
		return fmt.Errorf("%s is given by the node: choose another name", key)
	case strings.ContainsFunc(value, func(r rune) bool { return r == ';' || unicode.IsControl(r) }):
		return fmt.Errorf("the value of %s must have no semicolon and no control character, got %q", key, value)
	}
	return nil
}

// Ports counts networks and their ports together, as one amount to be bounded.
func Ports(networks []*Resource) (n int) {
	for _, network := range networks {
		n++
		if network != nil {
			n += len(network.ReservedPorts) + len(network.DynamicPorts)
		}
	}
	return n
}
