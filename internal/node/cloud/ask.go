package cloud

import (
	"context"
	"errors"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
)

// askAmazon asks with a token of the service, which only who can also PUT gets. A service that knows none is asked without.
func askAmazon(ctx context.Context, s *service, n *notes) error {
	const data = "/latest/meta-data/"
	s.base = strings.TrimSuffix(s.base, strings.TrimSuffix(data, "/")) // as Nomad's variable has it
	token, status, err := s.do(ctx, http.MethodPut, "/latest/api/token", http.Header{"X-Aws-Ec2-Metadata-Token-Ttl-Seconds": {"60"}})
	token = strings.TrimSpace(token)
	switch {
	case err != nil:
		return err
	case status == http.StatusOK && plain(token):
		s.header.Set("X-aws-ec2-metadata-token", token)
	case status == http.StatusForbidden || status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
	default:
		return errors.New("the service gives no token: HTTP status " + strconv.Itoa(status))
	}
	id, err := s.get(ctx, data+"instance-id")
	if err != nil {
		return err
	}
	if err := n.identify("instance-id", id); err != nil {
		return err
	}
	alone := map[string]bool{
		"hostname": true, "local-hostname": true, "local-ipv4": true, "mac": true, "public-hostname": true, "public-ipv4": true,
		"ami-id": false, "instance-type": false, "instance-life-cycle": false, "placement/availability-zone": false,
	}
	paths := make([]string, 0, len(alone))
	for key := range alone {
		paths = append(paths, data+key)
	}
	zone, mac := "", ""
	err = s.each(ctx, paths, n.skip, func(path, text string) {
		key := strings.TrimPrefix(path, data)
		n.set(strings.ReplaceAll(key, "/", "."), text, alone[key])
		switch key {
		case "placement/availability-zone":
			zone = strings.TrimSpace(text)
		case "mac":
			mac = strings.TrimSpace(text)
		}
	})
	if err != nil {
		return err
	}
	if plain(zone) {
		n.id = zone + "." + n.id
	}
	if !labelName().MatchString(mac) || strings.Contains(mac, "..") {
		return nil
	}
	return s.each(ctx, []string{data + "network/interfaces/macs/" + mac + "/ipv6s"}, n.skip, func(_, text string) {
		first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
		n.set("public-ipv6", first, true)
	})
}

// askGoogle asks with the header without which the service refuses, and believes no answer without it.
func askGoogle(ctx context.Context, s *service, n *notes) error {
	const flavor = "Metadata-Flavor"
	s.header.Set(flavor, "Google")
	s.want, s.value = flavor, "Google"
	id, err := s.get(ctx, "/id")
	if err != nil {
		return err
	}
	if err := n.identify("id", id); err != nil {
		return err
	}
	alone := map[string]bool{
		"hostname": true, "zone": false, "machine-type": false, "cpu-platform": false, "scheduling/automatic-restart": false,
		"scheduling/on-host-maintenance": false,
	}
	paths := []string{"/attributes/"}
	for key := range alone {
		paths = append(paths, "/"+key)
	}
	var labels []string
	err = s.each(ctx, paths, n.skip, func(at, text string) {
		switch key := strings.TrimPrefix(at, "/"); key {
		case "attributes/":
			labels = strings.Fields(text)
		case "zone", "machine-type": // projects/1/zones/europe-west1-b
			n.set(key, path.Base(strings.TrimSpace(text)), false)
		default:
			n.set(strings.ReplaceAll(key, "/", "."), text, alone[key])
		}
	})
	if err != nil {
		return err
	}
	if err := askGoogleNetworks(ctx, s, n); err != nil {
		return err
	}
	labels = slices.DeleteFunc(labels, func(name string) bool {
		return secret(name) || !labelName().MatchString(name) || strings.Contains(name, "..")
	})
	paths = paths[:0]
	for _, name := range labels[:min(len(labels), mostLabels)] {
		paths = append(paths, "/attributes/"+name)
	}
	return s.each(ctx, paths, n.skip, func(path, text string) { n.label("attr.", strings.TrimPrefix(path, "/attributes/"), text) })
}

func askGoogleNetworks(ctx context.Context, s *service, n *notes) error {
	var interfaces []struct {
		Network, IP   string
		AccessConfigs []struct{ ExternalIP string }
	}
	if err := s.decode(ctx, "/network-interfaces/?recursive=true", &interfaces); err != nil && !errors.Is(err, errMissing) {
		return err
	}
	for _, i := range interfaces[:min(len(interfaces), mostLabels)] {
		name := path.Base(i.Network)
		n.label("network.", name, "true")
		n.label("network.", unique+name+".ip", i.IP)
		for at, access := range i.AccessConfigs {
			n.label("network.", unique+name+".external-ip."+strconv.Itoa(at), access.ExternalIP)
		}
	}
	var tags []string
	if err := s.decode(ctx, "/tags?alt=json", &tags); err != nil && !errors.Is(err, errMissing) {
		return err
	}
	for _, tag := range tags {
		n.label("tag.", tag, "true")
	}
	return nil
}

// askAzure asks with the header without which the service refuses.
func askAzure(ctx context.Context, s *service, n *notes) error {
	const version = "?api-version=2019-06-04&format=json"
	s.header.Set("Metadata", "true")
	var of struct {
		VMID, Name, Location, ResourceGroupName, VMScaleSetName, VMSize, Zone string
		TagsList                                                              []struct{ Name, Value string }
	}
	var network struct {
		Interface []struct {
			MacAddress string
			IPv4, IPv6 struct {
				IPAddress []struct{ PrivateIPAddress, PublicIPAddress string }
			}
		}
	}
	if err := s.decode(ctx, "/compute"+version, &of); err != nil {
		return err
	}
	if err := n.identify("id", of.VMID); err != nil {
		return err
	}
	n.set("name", of.Name, true)
	for key, value := range map[string]string{
		"location": of.Location, "resource-group": of.ResourceGroupName, "scale-set": of.VMScaleSetName, "vm-size": of.VMSize, "zone": of.Zone,
	} {
		n.set(key, value, false)
	}
	for _, tag := range of.TagsList {
		n.label("tag.", tag.Name, tag.Value)
	}
	if err := s.decode(ctx, "/network"+version, &network); err != nil && !errors.Is(err, errMissing) {
		return err
	}
	if len(network.Interface) == 0 {
		return nil
	}
	first := network.Interface[0]
	n.set("mac", first.MacAddress, true)
	if len(first.IPv4.IPAddress) > 0 {
		n.set("local-ipv4", first.IPv4.IPAddress[0].PrivateIPAddress, true)
		n.set("public-ipv4", first.IPv4.IPAddress[0].PublicIPAddress, true)
	}
	if len(first.IPv6.IPAddress) > 0 {
		n.set("local-ipv6", first.IPv6.IPAddress[0].PrivateIPAddress, true)
		n.set("public-ipv6", first.IPv6.IPAddress[0].PublicIPAddress, true)
	}
	return nil
}

func askDigitalOcean(ctx context.Context, s *service, n *notes) error {
	id, err := s.get(ctx, "/id")
	if err != nil {
		return err
	}
	if err := n.identify("id", id); err != nil {
		return err
	}
	keys := map[string]string{
		"/hostname": "hostname", "/region": "region", "/interfaces/public/0/mac": "mac",
		"/interfaces/private/0/ipv4/address": "private-ipv4", "/interfaces/public/0/ipv4/address": "public-ipv4",
		"/interfaces/private/0/ipv6/address": "private-ipv6", "/interfaces/public/0/ipv6/address": "public-ipv6",
	}
	paths := make([]string, 0, len(keys))
	for path := range keys {
		paths = append(paths, path)
	}
	return s.each(ctx, paths, n.skip, func(path, text string) { n.set(keys[path], text, path != "/region") })
}

// askOpenStack asks nova's own service, and for what only its likeness of Amazon's has.
func askOpenStack(ctx context.Context, s *service, n *notes) error {
	var of struct {
		UUID, Name, Hostname string
		Zone                 string `json:"availability_zone"`
		Project              string `json:"project_id"`
		Meta                 map[string]string
	}
	if err := s.decode(ctx, "/openstack/latest/meta_data.json", &of); err != nil {
		return err
	}
	if err := n.identify("id", of.UUID); err != nil {
		return err
	}
	n.set("name", of.Name, true)
	n.set("hostname", of.Hostname, true)
	n.set("availability-zone", of.Zone, false)
	n.set("project-id", of.Project, false)
	for key, value := range of.Meta {
		n.label("meta.", key, value)
	}
	const data = "/latest/meta-data/"
	return s.each(ctx, []string{data + "instance-type", data + "local-ipv4", data + "public-ipv4"}, n.skip, func(path, text string) {
		key := strings.TrimPrefix(path, data)
		n.set(key, text, key != "instance-type")
	})
}
