package config

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"strings"

	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/internal/version"
)

// hidden stands in place of a secret.
const hidden = "<redacted>"

// Shown is the configuration as GET /v1/agent/self shows it: under its own names, and under those that Nomad's clients
// know. Tokens and other secrets are hidden.
func (a *Agent) Shown() map[string]any {
	text, err := json.Marshal(a)
	var out map[string]any
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		out = map[string]any{"error": err.Error()}
	}
	maps.Copy(out, a.nomadNames())
	redact(out)
	return out
}

// nomadNames is what the agent is set to under the names that Nomad's clients know, where ours differ or are empty.
// Its command line links to a web page wherever it is not told that there is none.
func (a *Agent) nomadNames() map[string]any {
	own, advertised := cmp.Or(a.Addresses, &Addresses{}), cmp.Or(a.Advertise, &Addresses{})
	tls, limits, headers := cmp.Or(a.TLS, &TLS{}), cmp.Or(a.Limits, &Limits{}), map[string]any{}
	for key, value := range a.Headers {
		headers[key] = value
	}
	return map[string]any{
		"Version":     map[string]any{"Version": version.Nomad, "Drover": version.Version},
		"NodeName":    a.AgentName(),
		"DevMode":     a.Dev,
		"EnableDebug": optional.Value(a.Debug),
		"LogJson":     optional.Value(a.LogJSON),
		"Addresses":   own,
		"AdvertiseAddrs": Addresses{
			HTTP: cmp.Or(advertised.HTTP, a.HTTPAddress()), RPC: cmp.Or(advertised.RPC, a.RPCAddress()),
			Serf: cmp.Or(advertised.Serf, a.SerfAddress()),
		},
		"ACL":    a.shownACL(),
		"Audit":  cmp.Or(a.Audit, &Audit{}),
		"UI":     map[string]any{"Enabled": false, "ShowCLIHints": false},
		"Limits": limits,
		"TLSConfig": map[string]any{
			"EnableHTTP": optional.Value(tls.HTTP), "EnableRPC": optional.Value(tls.RPC), "CAFile": tls.CAFile, "CertFile": tls.CertFile,
		},
		"LeaveOnInt":   optional.Value(a.LeaveOnInterrupt),
		"LeaveOnTerm":  optional.Value(a.LeaveOnTerminate),
		"EnableSyslog": optional.Value(a.Syslog),

		"HTTPAPIResponseHeaders": headers,
	}
}

// AgentName is what the agent is called: by the configuration, else as its machine. It is "" if that has no name.
func (a *Agent) AgentName() string {
	if a.Name != "" {
		return a.Name
	}
	name, _ := os.Hostname() // empty is shown as it is
	return name
}

// redact hides, wherever they are, values whose key says that they are secret.
func redact(v any) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			redact(one)
		}
	case map[string]any:
		for key, value := range v {
			if secret(key) {
				v[key] = hide(value)
				continue
			}
			redact(value)
		}
	}
}

// secret reports whether the key says that what it has is secret.
func secret(key string) bool {
	name := strings.ToLower(key)
	return strings.HasSuffix(name, "token") || strings.HasSuffix(name, "tokens") || strings.Contains(name, "secret") ||
		strings.Contains(name, "password") || name == "encrypt"
}

// hide returns what is shown in place of a secret, or of a list of them. That there is none may be seen.
func hide(value any) any {
	switch v := value.(type) {
	case string:
		if v != "" {
			return hidden
		}
	case []any:
		for i := range v {
			v[i] = hide(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = hide(v[key])
		}
	}
	return value
}
