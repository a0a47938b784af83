package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/drover-project/drover/internal/config/machines"
)

// own are keys that each server has its own value of.
var own = map[string]bool{
	"server.enabled": true, "server.bootstrap_expect": true, "server.data_dir": true, "server.retry_join": true, "server.start_join": true,
	"server.server_join": true, "server.retry_interval": true, "server.retry_max": true, "server.rejoin_after_leave": true,
	"server.non_voting_server": true, "server.redundancy_zone": true, "server.num_schedulers": true, "server.join_token_file": true,
	"tls.ca_file": true, "tls.cert_file": true, "tls.key_file": true, "exec.public_url": true,
	"fleet.pool": true, // the state has what counts
}

// Alike are digests of what all servers of a region should be set to alike, by key: who leads acts by its own settings. Of a
// secret it only says that there is one.
func (a *Agent) Alike() map[string]string {
	out := map[string]string{}
	alike(out, "", reflect.ValueOf(struct {
		APIToken  string          `hcl:"api_token"`
		ACL       *ACL            `hcl:"acl"`
		Server    *Server         `hcl:"server"`
		Autopilot *Autopilot      `hcl:"autopilot"`
		TLS       *TLS            `hcl:"tls"`
		Limits    *Limits         `hcl:"limits"`
		Exec      *Exec           `hcl:"exec"`
		Fleet     *machines.Fleet `hcl:"fleet"`
	}{a.APIToken, a.ACL, a.Server, a.Autopilot, a.TLS, a.Limits, a.Exec, a.Fleet}))
	return out
}

// alike adds the digests of the struct's fields that are set.
func alike(out map[string]string, path string, v reflect.Value) {
	for i := range v.NumField() {
		name, kind, _ := strings.Cut(v.Type().Field(i).Tag.Get("hcl"), ",")
		key, f := path+name, v.Field(i)
		switch {
		case kind == "remain" || own[key] || f.IsZero():
		case f.Kind() == reflect.Pointer && f.Elem().Kind() == reflect.Struct:
			alike(out, key+".", f.Elem())
		case f.Kind() == reflect.Struct:
			alike(out, key+".", f)
		case secret(name):
			out[key] = "set"
		default:
			out[key] = digest(f.Interface())
		}
	}
}

// digest is short: it shows that values differ, and not which they are. Secrets within are hidden before.
func digest(value any) string {
	text, err := json.Marshal(value)
	var plain any
	if err == nil {
		err = json.Unmarshal(text, &plain)
	}
	if err != nil {
		return "error"
	}
	redact(plain)
	if text, err = json.Marshal(plain); err != nil {
		return "error"
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6])
}
