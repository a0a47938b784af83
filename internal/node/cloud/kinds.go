package cloud

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// kind is a cloud.
type kind struct {
	name     string // as Nomad calls what asks it
	variable string // of the environment, with the service's URL
	base     string // URL of the service otherwise
	prefix   string // of its attributes
	link     string // what the machine's id is called among the node's links
	here     func(firmware) bool
	ask      func(ctx context.Context, s *service, n *notes) error
}

// kinds are the clouds that are known. All but OpenStack's names are Nomad's.
func kinds() []kind {
	const address = "http://169.254.169.254"
	return []kind{
		{
			"env_aws", "AWS_ENV_URL", address, "platform.aws.", "aws.ec2",
			func(f firmware) bool {
				return f.vendor == "Amazon EC2" || strings.Contains(f.bios, "amazon") || strings.HasPrefix(strings.ToLower(f.xen), "ec2")
			}, askAmazon,
		},
		{
			"env_gce", "GCE_ENV_URL", address + "/computeMetadata/v1/instance", "platform.gce.", "gce",
			func(f firmware) bool { return f.product == "Google Compute Engine" }, askGoogle,
		},
		{
			"env_azure", "AZURE_ENV_URL", address + "/metadata/instance", "platform.azure.", "azure",
			func(f firmware) bool { return f.chassis == "7783-7084-3265-9085-8269-3286-77" }, askAzure,
		},
		{
			"env_digitalocean", "DO_ENV_URL", address + "/metadata/v1", "platform.digitalocean.", "digitalocean",
			func(f firmware) bool { return f.vendor == "DigitalOcean" }, askDigitalOcean,
		},
		{
			"env_openstack", "OPENSTACK_ENV_URL", address, "platform.openstack.", "openstack",
			func(f firmware) bool {
				return strings.HasPrefix(f.product, "OpenStack ") || f.vendor == "OpenStack Foundation" || f.chassis == "OpenTelekomCloud"
			}, askOpenStack,
		},
	}
}

// firmware are the words of the machine's firmware about itself, "" where it has none.
type firmware struct{ vendor, product, chassis, bios, xen string }

// read reads them of the folder in which the kernel shows them.
func read(root string) firmware {
	word := func(path string) string {
		f, err := os.Open(filepath.Join(root, path))
		if err != nil {
			return ""
		}
		defer f.Close()
		text, _ := io.ReadAll(io.LimitReader(f, mostValue))
		return strings.TrimSpace(string(text))
	}
	return firmware{
		vendor: word("class/dmi/id/sys_vendor"), product: word("class/dmi/id/product_name"), chassis: word("class/dmi/id/chassis_asset_tag"),
		bios: word("class/dmi/id/bios_version"), xen: word("hypervisor/uuid"),
	}
}
