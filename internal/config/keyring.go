package config

import (
	"os"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/optional"
)

// Keyring is how root keys are wrapped: `keyring "aead"` with a key-encryption key of the servers, `keyring "transit"` with one that
// Vault has. Several may be active, each of which opens all; one that is not only opens what it wrapped.
type Keyring struct {
	Provider string `hcl:"provider,label"` // aead or transit
	// tells several blocks of one provider apart; default: none
	Name   string `hcl:"name,optional"`
	Active *bool  `hcl:"active,optional"` // wrap new keys with it; default true if it is the only block, else false
	// aead: file with the key-encryption key, 32 bytes in base64, the same on all servers; path; default: a copy in each data folder
	KeyFile string `hcl:"key_file,optional"`
	KeyEnv  string `hcl:"key_env,optional"` // aead: variable of the agent's environment with that key, in place of a file

	Address   string `hcl:"address,optional"`    // transit: URL of the service; default: VAULT_ADDR
	Token     string `hcl:"token,optional"`      // transit: token that the service asks for; default: VAULT_TOKEN
	KeyName   string `hcl:"key_name,optional"`   // transit: name of the key-encryption key
	MountPath string `hcl:"mount_path,optional"` // transit: path of the engine; default "transit"
	Namespace string `hcl:"namespace,optional"`  // transit: namespace of the service; default: VAULT_NAMESPACE, or none
	// transit: certificates of authorities that the service's certificate is of; path; default: the machine's
	CACert     string `hcl:"tls_ca_cert,optional"`
	ClientCert string `hcl:"tls_client_cert,optional"` // transit: certificate that the service is shown; path
	ClientKey  string `hcl:"tls_client_key,optional"`  // transit: key of that certificate; path
	ServerName string `hcl:"tls_server_name,optional"` // transit: name that the service's certificate must have; default: that of address
}

// The providers of keyrings.
const (
	KeyringAEAD    = "aead"
	KeyringTransit = "transit"
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

// keyringProblems are those of the keyring blocks.
func (a *Agent) keyringProblems(p *problems) {
	_, active := a.KeyringBlocks()
	p.check(active > 0, "keyring", "one block must have active = true")
	for _, k := range a.Keyrings {
		at := "keyring " + k.Provider
		switch k.Provider {
		case KeyringAEAD:
			p.check(k.KeyFile == "" || k.KeyEnv == "", at, "key_file and key_env: give one of the two")
			p.check(k.Address == "" && k.Token == "" && k.KeyName == "", at, "address, token and key_name are for keyring \"transit\"")
		case KeyringTransit:
			address := k.Setting(k.Address, "VAULT_ADDR")
			p.check(strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://"), at,
				"address: must be a URL such as https://vault.example.com:8200, got %q", address)
			p.check(k.KeyName != "", at, "key_name: must be the name of a key of the transit engine")
			p.check(k.KeyFile == "" && k.KeyEnv == "", at, "key_file and key_env are for keyring \"aead\"")
			p.check((k.ClientCert == "") == (k.ClientKey == ""), at, "tls_client_cert and tls_client_key: give both or none")
		default:
			p.check(false, at, "no such provider here: use \"aead\" or \"transit\"")
		}
	}
}
