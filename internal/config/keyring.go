package config

import (
	"maps"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/optional"
)

// Keyring is how root keys are wrapped: `keyring "aead"` with a key-encryption key of the servers, `keyring "transit"` with one that
// Vault has, `keyring "awskms"`, `keyring "gcpckms"` and `keyring "azurekeyvault"` with one that a cloud has. Several may be active, each
// of which opens all; one that is not only opens what it wrapped.
type Keyring struct {
	Provider string `hcl:"provider,label"` // aead, transit, awskms, gcpckms or azurekeyvault
	// tells several blocks of one provider apart; default: none
	Name   string `hcl:"name,optional"`
	Active *bool  `hcl:"active,optional"` // wrap new keys with it; default true if it is the only block, else false
	// aead: file with the key-encryption key, 32 bytes in base64, the same on all servers; path; default: a copy in each data folder
	KeyFile string `hcl:"key_file,optional"`
	KeyEnv  string `hcl:"key_env,optional"` // aead: variable of the agent's environment with that key, in place of a file

	Address   string `hcl:"address,optional"`    // transit: URL of the service; default: VAULT_ADDR
	Token     string `hcl:"token,optional"`      // transit: token that the service asks for; default: VAULT_TOKEN
	KeyName   string `hcl:"key_name,optional"`   // transit, azurekeyvault: name of the key-encryption key
	MountPath string `hcl:"mount_path,optional"` // transit: path of the engine; default "transit"
	Namespace string `hcl:"namespace,optional"`  // transit: namespace of the service; default: VAULT_NAMESPACE, or none
	// transit: certificates of authorities that the service's certificate is of; path; default: the machine's
	CACert     string `hcl:"tls_ca_cert,optional"`
	ClientCert string `hcl:"tls_client_cert,optional"` // transit: certificate that the service is shown; path
	ClientKey  string `hcl:"tls_client_key,optional"`  // transit: key of that certificate; path
	ServerName string `hcl:"tls_server_name,optional"` // transit: name that the service's certificate must have; default: that of address

	// awskms: such as eu-central-1; gcpckms: location of the key ring; default: AWS_REGION, AWS_DEFAULT_REGION or GOOGLE_REGION
	Region    string `hcl:"region,optional"`
	KMSKeyID  string `hcl:"kms_key_id,optional"` // awskms: id, ARN or alias of a symmetric key
	AccessKey string `hcl:"access_key,optional"` // awskms: id of an access key; default: as Amazon's tools find credentials
	SecretKey string `hcl:"secret_key,optional"` // awskms: the access key's secret
	// awskms: token of an access key that expires; default: none
	SessionToken string `hcl:"session_token,optional"`
	// awskms, gcpckms, azurekeyvault: URL of the service; default: AWS_KMS_ENDPOINT, or the cloud's
	Endpoint string `hcl:"endpoint,optional"`

	// gcpckms: file with a service account's key; path; default: GOOGLE_CREDENTIALS or GOOGLE_APPLICATION_CREDENTIALS, or the machine's
	Credentials string `hcl:"credentials,optional" json:"-"`
	Project     string `hcl:"project,optional"`    // gcpckms: project of the key ring; default: GOOGLE_PROJECT
	KeyRing     string `hcl:"key_ring,optional"`   // gcpckms: name of the key ring
	CryptoKey   string `hcl:"crypto_key,optional"` // gcpckms: name of a key that encrypts and decrypts

	VaultName    string `hcl:"vault_name,optional"`    // azurekeyvault: name of the vault
	TenantID     string `hcl:"tenant_id,optional"`     // azurekeyvault: tenant of the application; default: AZURE_TENANT_ID
	ClientID     string `hcl:"client_id,optional"`     // azurekeyvault: id of the application or identity; default: AZURE_CLIENT_ID
	ClientSecret string `hcl:"client_secret,optional"` // azurekeyvault: default: AZURE_CLIENT_SECRET, or the machine's identity
	// azurekeyvault: AzurePublicCloud, AzureUSGovernmentCloud or AzureChinaCloud; default: the first
	Environment string `hcl:"environment,optional"`
	Resource    string `hcl:"resource,optional"` // azurekeyvault: domain of vaults, such as managedhsm.azure.net; default: the environment's
}

// The providers of keyrings.
const (
	KeyringAEAD    = "aead"
	KeyringTransit = "transit"
	KeyringAWS     = "awskms"
	KeyringGoogle  = "gcpckms"
	KeyringAzure   = "azurekeyvault"
)

// KeyringBlocks are the blocks, the active ones first; one "aead" where there is none.
func (a *Agent) KeyringBlocks() (blocks []*Keyring, active int) {
	if len(a.Keyrings) == 0 {
		return []*Keyring{{Provider: KeyringAEAD}}, 1
	}
	var rest []*Keyring
	for _, k := range a.Keyrings {
		if optional.Value(k.Active) || k.Active == nil && len(a.Keyrings) == 1 {
			blocks = append(blocks, k)
		} else {
			rest = append(rest, k)
		}
	}
	return append(blocks, rest...), len(blocks)
}

// Setting returns what the block says, or the variable of the environment where it says nothing.
func (k *Keyring) Setting(value, variable string) string {
	if value != "" || variable == "" {
		return value
	}
	return os.Getenv(variable)
}

// RootKeyTimes are how long a root key encrypts, how long an unneeded one is kept, and the time between two looks; 0 = the default.
func (a *Agent) RootKeyTimes() (rotate, keep, collect time.Duration) {
	s := a.Server
	return Duration(s.RootKeyRotation, 0), Duration(s.RootKeyGC, 0), Duration(s.RootKeyGCInterval, 0)
}

// keyringKeys are the keys of each provider, besides name and active.
var keyringKeys = map[string]string{
	KeyringAEAD:    "key_file key_env",
	KeyringTransit: "address token key_name mount_path namespace tls_ca_cert tls_client_cert tls_client_key tls_server_name",
	KeyringAWS:     "region kms_key_id access_key secret_key session_token endpoint",
	KeyringGoogle:  "region endpoint credentials project key_ring crypto_key",
	KeyringAzure:   "key_name endpoint vault_name tenant_id client_id client_secret environment resource",
}

// keyringProblems are those of the keyring blocks.
func (a *Agent) keyringProblems(p *problems) {
	_, active := a.KeyringBlocks()
	p.check(active > 0, "keyring", "one block must have active = true")
	for _, k := range a.Keyrings {
		at := "keyring " + k.Provider
		own, known := keyringKeys[k.Provider]
		if !known {
			p.check(false, at, "no such provider here: use one of %s", strings.Join(slices.Sorted(maps.Keys(keyringKeys)), ", "))
			continue
		}
		for _, key := range k.given() {
			p.check(slices.Contains(strings.Fields(own), key), at, "%s: this provider has no such key, it has %s", key, own)
		}
		k.problems(p, at)
	}
}

// given are the keys that the block sets and that are not of every provider.
func (k *Keyring) given() (keys []string) {
	v := reflect.ValueOf(*k)
	for i := range v.NumField() {
		key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("hcl"), ",")
		if key != "provider" && key != "name" && v.Field(i).Kind() == reflect.String && v.Field(i).String() != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// problems are those of one block of a known provider.
func (k *Keyring) problems(p *problems, at string) {
	needed := func(key, value, what string) { p.check(value != "", at, "%s: must be %s", key, what) }
	switch k.Provider {
	case KeyringAEAD:
		p.check(k.KeyFile == "" || k.KeyEnv == "", at, "key_file and key_env: give one of the two")
	case KeyringTransit:
		address := k.Setting(k.Address, "VAULT_ADDR")
		p.check(strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://"), at,
			"address: must be a URL such as https://vault.example.com:8200, got %q", address)
		needed("key_name", k.KeyName, "the name of a key of the transit engine")
		p.check((k.ClientCert == "") == (k.ClientKey == ""), at, "tls_client_cert and tls_client_key: give both or none")
	case KeyringAWS:
		needed("region", k.AWSRegion(), "the region of the key, such as eu-central-1")
		needed("kms_key_id", k.KMSKeyID, "the id, ARN or alias of a symmetric key")
		p.check((k.AccessKey == "") == (k.SecretKey == ""), at, "access_key and secret_key: give both or none")
		p.check(k.SessionToken == "" || k.AccessKey != "", at, "session_token: it belongs to an access_key")
	case KeyringGoogle:
		needed("project", k.Setting(k.Project, "GOOGLE_PROJECT"), "the project of the key ring")
		needed("region", k.Setting(k.Region, "GOOGLE_REGION"), "the location of the key ring, such as global")
		needed("key_ring", k.KeyRing, "the name of the key ring")
		needed("crypto_key", k.CryptoKey, "the name of the key")
	case KeyringAzure:
		needed("vault_name", k.VaultName, "the name of the vault")
		needed("key_name", k.KeyName, "the name of an RSA key in the vault")
		if k.Setting(k.ClientSecret, "AZURE_CLIENT_SECRET") != "" {
			needed("tenant_id", k.Setting(k.TenantID, "AZURE_TENANT_ID"), "the application's tenant")
			needed("client_id", k.Setting(k.ClientID, "AZURE_CLIENT_ID"), "the application's id")
		}
	}
	endpoint := k.KMSEndpoint()
	u, err := url.Parse(endpoint)
	p.check(endpoint == "" || err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname())), at,
		"endpoint: must be a URL that begins with https://, as the service is sent keys; got %q", endpoint)
}

// AWSRegion is the region of an "awskms" block.
func (k *Keyring) AWSRegion() string {
	return k.Setting(k.Setting(k.Region, "AWS_REGION"), "AWS_DEFAULT_REGION")
}

// KMSEndpoint is where the cloud's service is, "" for the cloud's own address.
func (k *Keyring) KMSEndpoint() string {
	if k.Provider == KeyringAWS {
		return k.Setting(k.Endpoint, "AWS_KMS_ENDPOINT")
	}
	return k.Endpoint
}
