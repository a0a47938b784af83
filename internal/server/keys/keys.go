package keys

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/control/keyring"
	"github.com/drover-project/drover/internal/control/keyring/kms"
	"github.com/drover-project/drover/internal/control/keyring/transit"
	"github.com/drover-project/drover/internal/fleet/provider/ec2"
	"github.com/drover-project/drover/internal/peercall"
	"github.com/drover-project/drover/internal/server/servers"
)

// procKey asks a server for a key-encryption key that it has.
const procKey = "Keyring.Key"

// keyringFolder is where a server keeps key-encryption keys, beside its log.
const keyringFolder = "keyring"

// Deps is what wrappers need.
type Deps struct {
	Folder  string // of the log; "" if nothing is kept
	Servers *servers.Servers
	Clock   clock.Clock
	Logger  *slog.Logger
}

// Open makes the wrappers that the keyring blocks describe, and lets the other servers ask for the keys that this one keeps. Errors:
// Invalid, with the block.
func Open(blocks []*config.Keyring, d Deps) ([]keyring.Wrapper, error) {
	var wrappers []keyring.Wrapper
	var files []*keyring.Files
	for _, b := range blocks {
		w, own, err := d.wrapper(b)
		if err != nil {
			return nil, drover.Errorf(drover.CodeOf(err), "keyring %q: %w", b.Provider, err)
		}
		wrappers = append(wrappers, w)
		if own != nil {
			files = append(files, own)
		}
	}
	peercall.Handle(d.Servers.Mux(), procKey, func(_ context.Context, from, id string) ([]byte, error) {
		for _, f := range files {
			if key, err := f.Own(id); drover.CodeOf(err) != drover.NotFound {
				d.Logger.Info("gave a key-encryption key to another server", "server", from, "key", id)
				return key, err
			}
		}
		return nil, drover.Errorf(drover.NotFound, "this server has no key-encryption key %s", id)
	})
	return wrappers, nil
}

// wrapper makes what a keyring block describes; files is nil of what keeps none.
func (d Deps) wrapper(b *config.Keyring) (w keyring.Wrapper, files *keyring.Files, err error) {
	switch b.Provider {
	case config.KeyringAWS, config.KeyringGoogle, config.KeyringAzure:
		w, err = d.cloudWrapper(b)
		return w, nil, err
	case config.KeyringTransit:
		secure, err := transitTLS(b)
		return transit.New(transit.Config{
			Label: b.Name, Address: b.Setting(b.Address, "VAULT_ADDR"), Token: b.Setting(b.Token, "VAULT_TOKEN"),
			Namespace: b.Setting(b.Namespace, "VAULT_NAMESPACE"), Mount: b.MountPath, Key: b.KeyName, TLS: secure,
		}), nil, err
	}
	text, at := "", ""
	switch {
	case b.KeyFile != "":
		data, err := os.ReadFile(b.KeyFile)
		if err != nil {
			return nil, nil, drover.Errorf(drover.Invalid, "key_file: %w", err)
		}
		text, at = string(data), "key_file"
	case b.KeyEnv != "":
		text, at = os.Getenv(b.KeyEnv), "key_env "+b.KeyEnv
	default:
		folder := d.Folder
		if folder != "" {
			folder = filepath.Join(folder, keyringFolder)
		}
		var others keyring.Others
		if d.Servers.Clustered() {
			others = otherServers{d.Servers}
		}
		own := keyring.NewFiles(b.Name, folder, others)
		return own, own, nil
	}
	fixed, err := keyring.NewFixed(b.Name, text)
	if err != nil {
		return nil, nil, drover.Errorf(drover.Invalid, "%s: %w", at, err)
	}
	return fixed, nil, nil
}

// cloudWrapper makes what a keyring block describes that is about a cloud's key.
func (d Deps) cloudWrapper(b *config.Keyring) (keyring.Wrapper, error) {
	deps := kms.Deps{Name: b.Name, Clock: d.Clock}
	switch b.Provider {
	case config.KeyringAWS:
		region := b.AWSRegion()
		var sign ec2.Credentials = ec2.NewChain(ec2.ChainConfig{Region: region})
		if b.AccessKey != "" {
			sign = kms.StaticAWS(b.AccessKey, b.SecretKey, b.SessionToken)
		}
		return kms.NewAWS(kms.AWS{Region: region, Key: b.KMSKeyID, Endpoint: b.KMSEndpoint(), Credentials: sign}, deps), nil
	case config.KeyringGoogle:
		account, err := googleAccount(b)
		if err != nil {
			return nil, err
		}
		return kms.NewGoogle(kms.Google{
			Project: b.Setting(b.Project, "GOOGLE_PROJECT"), Region: b.Setting(b.Region, "GOOGLE_REGION"), KeyRing: b.KeyRing,
			CryptoKey: b.CryptoKey, Credentials: account, Endpoint: b.KMSEndpoint(), Metadata: os.Getenv("GCE_METADATA_HOST"),
		}, deps)
	default:
		return kms.NewAzure(kms.Azure{
			Vault: b.VaultName, Key: b.KeyName, Environment: b.Environment, Resource: b.Setting(b.Resource, "AZURE_AD_RESOURCE"),
			Endpoint: b.KMSEndpoint(), Tenant: b.Setting(b.TenantID, "AZURE_TENANT_ID"), Client: b.Setting(b.ClientID, "AZURE_CLIENT_ID"),
			Secret: b.Setting(b.ClientSecret, "AZURE_CLIENT_SECRET"), Authority: os.Getenv("AZURE_AUTHORITY_HOST"),
		}, deps)
	}
}

// googleAccount is a service account's key; nil = the machine's account.
func googleAccount(b *config.Keyring) ([]byte, error) {
	at := b.Setting(b.Setting(b.Credentials, "GOOGLE_CREDENTIALS"), "GOOGLE_APPLICATION_CREDENTIALS")
	switch {
	case at == "":
		return nil, nil // a valid answer
	case strings.HasPrefix(strings.TrimSpace(at), "{"): // a variable may hold the text itself
		return []byte(at), nil
	}
	text, err := os.ReadFile(at)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "credentials: %w", err)
	}
	return text, nil
}

// transitTLS is how the service is spoken with; nil = as everybody is.
func transitTLS(b *config.Keyring) (*tls.Config, error) {
	if b.CACert == "" && b.ClientCert == "" && b.ServerName == "" {
		return nil, nil
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: b.ServerName}
	if b.CACert != "" {
		pem, err := os.ReadFile(b.CACert)
		if err != nil {
			return nil, drover.Errorf(drover.Invalid, "tls_ca_cert: %w", err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(pem) {
			return nil, drover.Errorf(drover.Invalid, "tls_ca_cert: %s has no certificate", b.CACert)
		}
	}
	if b.ClientCert != "" {
		pair, err := tls.LoadX509KeyPair(b.ClientCert, b.ClientKey)
		if err != nil {
			return nil, drover.Errorf(drover.Invalid, "tls_client_cert: %w", err)
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out, nil
}

// otherServers gets keys from the servers of this region.
type otherServers struct{ servers *servers.Servers }

// KeyEncryptionKey implements keyring.Others.
func (o otherServers) KeyEncryptionKey(ctx context.Context, id string) ([]byte, error) {
	self := o.servers.Self()
	var silent []string
	for _, s := range o.servers.List() {
		switch {
		case s.ID == self.ID:
			continue
		case !s.Alive:
			silent = append(silent, s.Name+" is not reached")
			continue
		}
		key, err := peercall.Call[[]byte](ctx, o.servers.Client(), s.Address, procKey, id)
		switch drover.CodeOf(err) {
		case drover.NotFound, drover.NotImplemented:
		default:
			if err == nil {
				return key, nil
			}
			silent = append(silent, s.Name+": "+err.Error())
		}
	}
	if len(silent) > 0 {
		return nil, drover.Errorf(drover.Unavailable, "no server that answers has key-encryption key %s; %s", id, strings.Join(silent, "; "))
	}
	return nil, drover.Errorf(drover.NotFound, "no server has key-encryption key %s: put its file back into data_dir/server/%s of one of them",
		id, keyringFolder)
}
