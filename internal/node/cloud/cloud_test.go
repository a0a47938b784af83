package cloud

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover/internal/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ask asks the one cloud at the URL, and returns what it told.
func ask(t *testing.T, name, url string) (Found, error) {
	t.Helper()
	for _, k := range kinds() {
		if k.name == name {
			return New(Config{Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler)}).once(t.Context(), k, url)
		}
	}
	t.Fatalf("there is no %s", name)
	return Found{}, nil
}

// pages serves what is under each path, to whoever sends the headers.
func pages(t *testing.T, headers map[string]string, texts map[string]string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for key, value := range headers {
			if r.Header.Get(key) != value {
				http.Error(w, "who asks?", http.StatusForbidden)
				return
			}
		}
		if r.Header.Get("Metadata-Flavor") != "" {
			w.Header().Set("Metadata-Flavor", "Google")
		}
		text, ok := texts[r.URL.RequestURI()]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(s.Close)
	return s
}

func TestAmazon(t *testing.T) {
	t.Parallel()
	texts := map[string]string{
		"instance-id": "i-1", "ami-id": "ami-2", "instance-type": "m5.large", "local-ipv4": "10.0.0.1", "mac": "02:00:00:00:00:01",
		"placement/availability-zone": "eu-central-1a", "hostname": "ip-10-0-0-1",
		"network/interfaces/macs/02:00:00:00:00:01/ipv6s": "2001:db8::1\n2001:db8::2",
	}
	for name, withTokens := range map[string]bool{"with tokens": true, "of the first version": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch text, ok := texts[strings.TrimPrefix(r.URL.Path, "/latest/meta-data/")]; {
				case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token" && withTokens &&
					r.Header.Get("X-aws-ec2-metadata-token-ttl-seconds") == "60":
					_, _ = w.Write([]byte("good\n"))
				case r.Method != http.MethodGet || !ok:
					http.NotFound(w, r)
				case withTokens && r.Header.Get("X-aws-ec2-metadata-token") != "good":
					http.Error(w, "no token", http.StatusUnauthorized)
				default:
					_, _ = w.Write([]byte(text))
				}
			}))
			defer s.Close()
			found, err := ask(t, "env_aws", s.URL+"/latest/meta-data/") // as Nomad's variable has it
			require.NoError(t, err)
			require.Equal(t, map[string]string{
				"unique.platform.aws.instance-id": "i-1", "platform.aws.ami-id": "ami-2", "platform.aws.instance-type": "m5.large",
				"unique.platform.aws.local-ipv4": "10.0.0.1", "unique.platform.aws.mac": "02:00:00:00:00:01",
				"platform.aws.placement.availability-zone": "eu-central-1a", "unique.platform.aws.hostname": "ip-10-0-0-1",
				"unique.platform.aws.public-ipv6": "2001:db8::1",
			}, found.Attributes)
			require.Equal(t, map[string]string{"aws.ec2": "eu-central-1a.i-1"}, found.Links)
		})
	}
}

func TestGoogle(t *testing.T) {
	t.Parallel()
	s := pages(t, map[string]string{"Metadata-Flavor": "Google"}, map[string]string{
		"/id": "123", "/hostname": "a.internal", "/zone": "projects/1/zones/europe-west1-b",
		"/machine-type":                 "projects/1/machineTypes/n1-standard-1",
		"/scheduling/automatic-restart": "TRUE", "/scheduling/on-host-maintenance": "MIGRATE", "/cpu-platform": "Intel Skylake",
		"/network-interfaces/?recursive=true": `[{"network":"projects/1/networks/default","ip":"10.0.0.5",` +
			`"accessConfigs":[{"externalIp":"192.0.2.5","type":"ONE_TO_ONE_NAT"}]}]`,
		"/tags?alt=json":   `["web","unique.first"]`,
		"/attributes/":     "ring\nunique.rack\nstartup-script\nssh-keys\njoin_token\ndb_api_key\nconfigure-sh\n../id\n",
		"/attributes/ring": "blue", "/attributes/unique.rack": "7", "/attributes/db_api_key": "k",
		"/attributes/configure-sh":   strings.Repeat("#", mostBytes+1), // as on a node of GKE
		"/attributes/startup-script": "curl -H token", "/attributes/ssh-keys": "ssh-rsa", "/attributes/join_token": "t", "/attributes/../id": "x",
	})
	found, err := ask(t, "env_gce", s.URL)
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"unique.platform.gce.id": "123", "unique.platform.gce.hostname": "a.internal", "platform.gce.zone": "europe-west1-b",
		"platform.gce.machine-type": "n1-standard-1", "platform.gce.cpu-platform": "Intel Skylake",
		"platform.gce.scheduling.automatic-restart": "TRUE", "platform.gce.scheduling.on-host-maintenance": "MIGRATE",
		"platform.gce.network.default": "true", "unique.platform.gce.network.default.ip": "10.0.0.5",
		"unique.platform.gce.network.default.external-ip.0": "192.0.2.5",
		"platform.gce.tag.web":                              "true", "unique.platform.gce.tag.first": "true",
		"platform.gce.attr.ring": "blue", "unique.platform.gce.attr.rack": "7",
	}, found.Attributes)
	require.Equal(t, map[string]string{"gce": "123"}, found.Links)
}

// Who is no service of Google's does not send Google's header.
func TestSomebodyElseIsNotGoogle(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("1")) }))
	defer s.Close()
	_, err := ask(t, "env_gce", s.URL)
	require.EqualError(t, err, `/id: who answers is another: its Metadata-Flavor is ""`)
}

func TestAzure(t *testing.T) {
	t.Parallel()
	const version = "?api-version=2019-06-04&format=json"
	s := pages(t, map[string]string{"Metadata": "true"}, map[string]string{
		"/compute" + version: `{"vmId":"v-1","name":"vm1","location":"westeurope","resourceGroupName":"rg","vmScaleSetName":"",` +
			`"vmSize":"Standard_D2","zone":"2",` +
			`"customData":"c2VjcmV0","tagsList":[{"name":"team","value":"a b"},` +
			`{"name":"unique.rack","value":"7"},{"name":"dbPassword","value":"x"}]}`,
		"/network" + version: `{"interface":[{"macAddress":"0002",` +
			`"ipv4":{"ipAddress":[{"privateIpAddress":"10.0.0.4","publicIpAddress":"192.0.2.4"}]},"ipv6":{"ipAddress":[]}}]}`,
	})
	found, err := ask(t, "env_azure", s.URL)
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"unique.platform.azure.id": "v-1", "unique.platform.azure.name": "vm1", "platform.azure.location": "westeurope",
		"platform.azure.resource-group": "rg", "platform.azure.vm-size": "Standard_D2", "platform.azure.zone": "2",
		"unique.platform.azure.mac": "0002", "unique.platform.azure.local-ipv4": "10.0.0.4", "unique.platform.azure.public-ipv4": "192.0.2.4",
		"platform.azure.tag.team": "a b", "unique.platform.azure.tag.rack": "7",
	}, found.Attributes)
	require.Equal(t, map[string]string{"azure": "v-1"}, found.Links)
}

func TestDigitalOceanAndOpenStack(t *testing.T) {
	t.Parallel()
	s := pages(t, nil, map[string]string{"/id": "9", "/region": "fra1", "/hostname": "d", "/interfaces/public/0/ipv4/address": "192.0.2.9"})
	found, err := ask(t, "env_digitalocean", s.URL+"/")
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"unique.platform.digitalocean.id": "9", "platform.digitalocean.region": "fra1", "unique.platform.digitalocean.hostname": "d",
		"unique.platform.digitalocean.public-ipv4": "192.0.2.9",
	}, found.Attributes)
	require.Equal(t, map[string]string{"digitalocean": "9"}, found.Links)

	s = pages(t, nil, map[string]string{
		"/openstack/latest/meta_data.json": `{"uuid":"u-1","name":"n","hostname":"n.novalocal","availability_zone":"nova","project_id":"p",` +
			`"admin_pass":"x","meta":{"role":"db","admin_pass_secret":"y"}}`,
		"/latest/meta-data/instance-type": "m1.tiny",
	})
	found, err = ask(t, "env_openstack", s.URL)
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"unique.platform.openstack.id": "u-1", "unique.platform.openstack.name": "n", "unique.platform.openstack.hostname": "n.novalocal",
		"platform.openstack.availability-zone": "nova", "platform.openstack.project-id": "p", "platform.openstack.instance-type": "m1.tiny",
		"platform.openstack.meta.role": "db",
	}, found.Attributes)
	require.Equal(t, map[string]string{"openstack": "u-1"}, found.Links)
}

// A service that means harm costs no more than patience, some memory, and what it said.
func TestHostileServices(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		elsewhere.Add(1)
		_, _ = w.Write([]byte("6"))
	}))
	defer other.Close()
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"endless": {func(w http.ResponseWriter, _ *http.Request) {
			for _, err := w.Write(make([]byte, 4096)); err == nil; _, err = w.Write(make([]byte, 4096)) {
			}
		}, "larger than 65536 bytes"},
		"drip": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte("i"))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, "deadline exceeded"},
		"silent":     {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "deadline exceeded"},
		"redirect":   {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) }, "HTTP status 302"},
		"no id":      {func(http.ResponseWriter, *http.Request) {}, "no id of the machine"},
		"control id": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("a\x1b[2Jb")) }, "no id of the machine"},
		"many headers": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 64<<10))
			_, _ = w.Write([]byte("1"))
		}, "headers exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(c.handler)
			defer s.Close()
			_, err := ask(t, "env_digitalocean", s.URL)
			require.ErrorContains(t, err, c.want)
		})
	}
	t.Cleanup(func() { require.Zero(t, elsewhere.Load()) })
}

// Values that cannot be attributes are left out, the others are not.
func TestHostileValues(t *testing.T) {
	t.Parallel()
	s := pages(t, nil, map[string]string{
		"/id": "9", "/region": "a\x00b", "/hostname": strings.Repeat("x", 600), "/interfaces/public/0/mac": "two\nlines",
		"/interfaces/public/0/ipv4/address": "\xff\xfe", "/interfaces/private/0/ipv4/address": "10.0.0.1",
	})
	found, err := ask(t, "env_digitalocean", s.URL)
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"unique.platform.digitalocean.id": "9", "unique.platform.digitalocean.private-ipv4": "10.0.0.1",
	}, found.Attributes)

	n := newNotes("p.")
	for i := range 1000 {
		n.label("tag.", "t"+strings.Repeat("y", i), "v")
	}
	n.label("tag.", "a b", "v")
	require.Len(t, n.attributes, mostLabels)
	require.NotContains(t, n.attributes, "p.tag.a b")
}

// machine is a folder as the kernel's, with the words of the firmware.
func machine(t *testing.T, words map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range words {
		path = filepath.Join(root, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text+"\n"), 0o644))
	}
	return root
}

func TestOnlyTheMachinesCloudIsAsked(t *testing.T) {
	t.Parallel()
	for name, words := range map[string]map[string]string{
		"env_aws":          {"class/dmi/id/sys_vendor": "Amazon EC2"},
		"env_gce":          {"class/dmi/id/product_name": "Google Compute Engine"},
		"env_azure":        {"class/dmi/id/chassis_asset_tag": "7783-7084-3265-9085-8269-3286-77"},
		"env_digitalocean": {"class/dmi/id/sys_vendor": "DigitalOcean"},
		"env_openstack":    {"class/dmi/id/product_name": "OpenStack Nova"},
		"":                 {"class/dmi/id/sys_vendor": "Microsoft Corporation"}, // Hyper-V at home
	} {
		f := read(machine(t, words))
		for _, k := range kinds() {
			require.Equal(t, k.name == name, k.here(f), "%s by %s", k.name, name)
		}
	}
	require.True(t, kinds()[0].here(read(machine(t, map[string]string{"hypervisor/uuid": "ec2e1916-9099-7caf-fd21-012345abcdef"}))))

	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer s.Close()
	cfg := Config{
		Root: t.TempDir(), Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
		Asked: func(name string) bool { return name != "env_aws" }, Retry: func(string) Retry { return Retry{Exit: true} },
		Getenv: func(key string) string { return map[string]string{"AWS_ENV_URL": s.URL}[key] },
	}
	none := func(Found) { t.Error("nobody knows this machine") }
	require.NoError(t, New(cfg).Run(t.Context(), none))
	require.Zero(t, asked.Load(), "it was denied")
	cfg.Asked = func(string) bool { return true }
	require.ErrorContains(t, New(cfg).Run(t.Context(), none), "asking the metadata service for env_aws: the answer has no id of the machine")
	cfg.Retry = func(string) Retry { return Retry{} }
	require.NoError(t, New(cfg).Run(t.Context(), none))
}

// A service that comes late is asked again.
func TestRetries(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/id" && tries.Add(1) < 3 {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("7"))
	}))
	defer s.Close()
	cfg := Config{
		Root: t.TempDir(), Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler), Asked: func(string) bool { return true },
		Retry:  func(string) Retry { return Retry{Attempts: -1, Interval: time.Millisecond} },
		Getenv: func(key string) string { return map[string]string{"DO_ENV_URL": s.URL}[key] },
	}
	var found []Found
	require.NoError(t, New(cfg).Run(t.Context(), func(f Found) { found = append(found, f) }))
	require.Len(t, found, 1)
	require.Equal(t, "7", found[0].Links["digitalocean"])
	require.EqualValues(t, 3, tries.Load())

	ctx, cancel := context.WithCancelCause(t.Context())
	cfg.Getenv = func(key string) string { return map[string]string{"DO_ENV_URL": s.URL + "/none"}[key] }
	cfg.Retry = func(string) Retry {
		cancel(errors.New("the agent ends"))
		return Retry{Attempts: -1, Interval: time.Hour, Exit: true}
	}
	s.Close()
	require.NoError(t, New(cfg).Run(ctx, nil), "an agent that ends does not complain")
}
