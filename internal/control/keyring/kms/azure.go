package kms

import (
	"cmp"
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"

	"github.com/drover-project/drover"
)

// Azure says which RSA key of an Azure Key Vault, or a Managed HSM, wraps.
type Azure struct {
	Vault, Key  string // their names
	Environment string // AzurePublicCloud, AzureUSGovernmentCloud or AzureChinaCloud; "" = the first
	Resource    string // domain of vaults; "" = the environment's, such as vault.azure.net
	Endpoint    string // URL of the vault; "" = https://VAULT.RESOURCE
	// Tenant, Client and Secret are an application's. Without Secret it is the machine's identity, of the metadata service; Client tells
	// which, if it has several.
	Tenant, Client, Secret string
	Authority              string // URL of who gives tokens to applications; "" = the environment's
	Metadata               string // host:port of the metadata service; "" = 169.254.169.254
}

// azureClouds are the domains of vaults, and who gives tokens.
var azureClouds = map[string][2]string{
	"AzurePublicCloud":       {"vault.azure.net", "https://login.microsoftonline.com"},
	"AzureUSGovernmentCloud": {"vault.usgovcloudapi.net", "https://login.microsoftonline.us"},
	"AzureChinaCloud":        {"vault.azure.cn", "https://login.chinacloudapi.cn"},
}

// azure speaks Key Vault's REST API.
type azure struct {
	caller
	bearer
	id  string // the key's as the service names it, with no version
	key string // URL at which it is asked for
}

const (
	azureVersion = "7.4"
	azureAlg     = "RSA-OAEP-256"
)

// NewAzure returns a Wrapper; it asks nobody yet. Errors: Invalid for an unknown environment.
func NewAzure(cfg Azure, deps Deps) (*Wrapper, error) {
	cloud, ok := azureClouds[cmp.Or(cfg.Environment, "AzurePublicCloud")]
	if !ok {
		return nil, drover.Errorf(drover.Invalid, "environment: %q is none of AzurePublicCloud, AzureUSGovernmentCloud, AzureChinaCloud",
			cfg.Environment)
	}
	resource := cmp.Or(cfg.Resource, cloud[0])
	a := &azure{caller: newCaller("azurekeyvault", deps.Clock)}
	vault, path := "https://"+cfg.Vault+"."+resource, "/keys/"+url.PathEscape(cfg.Key)
	a.id, a.key = vault+path, cmp.Or(trimmed(cfg.Endpoint), vault)+path
	if cfg.Secret != "" {
		at := cmp.Or(trimmed(cfg.Authority), cloud[1]) + "/" + url.PathEscape(cfg.Tenant) + "/oauth2/v2.0/token"
		r := form(at, url.Values{
			"grant_type": {"client_credentials"}, "client_id": {cfg.Client}, "client_secret": {cfg.Secret},
			"scope": {"https://" + resource + "/.default"},
		})
		a.fetch = func(context.Context) (request, error) { return r, nil }
		return &Wrapper{"azurekeyvault", deps.Name, a}, nil
	}
	query := url.Values{"api-version": {"2018-02-01"}, "resource": {"https://" + resource}}
	if cfg.Client != "" {
		query.Set("client_id", cfg.Client)
	}
	at := "http://" + cmp.Or(cfg.Metadata, "169.254.169.254") + "/metadata/identity/oauth2/token?" + query.Encode()
	a.fetch = func(context.Context) (request, error) {
		return request{method: http.MethodGet, url: at, header: http.Header{"Metadata": {"true"}}}, nil
	}
	return &Wrapper{"azurekeyvault", deps.Name, a}, nil
}

// wrap uses the newest version of the key, and returns which that was.
func (a *azure) wrap(ctx context.Context, key []byte) (string, []byte, error) {
	keyID, wrapped, err := a.ask(ctx, "/wrapkey", key)
	if err == nil && a.version(keyID) == "" {
		err = drover.Errorf(drover.Unavailable, "keyring azurekeyvault: the service answers with key %q, asked for %s", keyID, a.id)
	}
	return keyID, wrapped, err
}

// unwrap asks nobody but the configured vault: what it sends has a token.
func (a *azure) unwrap(ctx context.Context, keyID string, wrapped []byte) ([]byte, error) {
	version := a.version(keyID)
	if version == "" {
		return nil, drover.Errorf(drover.NotFound, "keyring azurekeyvault: it was wrapped with %s, and this block is about %s", keyID, a.id)
	}
	_, plain, err := a.ask(ctx, "/"+version+"/unwrapkey", wrapped)
	return plain, err
}

// version is that of the configured key which the id names; "" if it is another key's. Names are the same in any case.
func (a *azure) version(keyID string) string {
	if len(keyID) <= len(a.id) || !strings.EqualFold(keyID[:len(a.id)+1], a.id+"/") {
		return ""
	}
	version := keyID[len(a.id)+1:]
	if strings.Trim(version, "0123456789abcdefABCDEF") != "" {
		return ""
	}
	return version
}

func (a *azure) ask(ctx context.Context, verb string, value []byte) (keyID string, out []byte, err error) {
	var said struct {
		KeyID string `json:"kid"`
		Value string `json:"value"` // base64url without padding
	}
	in := map[string]string{"alg": azureAlg, "value": base64.RawURLEncoding.EncodeToString(value)}
	f, err := a.call(ctx, &a.bearer, a.key+verb+"?api-version="+azureVersion, in, &said)
	if f != nil && f.status == http.StatusNotFound {
		return "", nil, drover.Errorf(drover.NotFound, "%w", err)
	}
	if err != nil {
		return "", nil, err
	}
	if out, err = base64.RawURLEncoding.DecodeString(said.Value); err != nil || len(out) == 0 {
		return "", nil, drover.Errorf(drover.Unavailable, "keyring azurekeyvault: the service answered without a value")
	}
	return said.KeyID, out, nil
}
