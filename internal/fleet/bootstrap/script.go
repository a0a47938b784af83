package bootstrap

import "strings"

// CloudInit is user data for machines whose image has our program: a script that starts the agent with the
// configuration, which may hold what only root may read.
func CloudInit(config string) string {
	return `#!/bin/sh
set -eu
umask 077
mkdir -p /var/lib/drover
cat >/var/lib/drover/agent.hcl <<'DROVER-CONFIG'
` + strings.TrimSuffix(config, "\n") + `
DROVER-CONFIG
if test -d /run/systemd/system; then
  exec systemd-run --unit=drover-agent --property=Restart=always --property=KillMode=process \
    drover agent -config /var/lib/drover/agent.hcl -data-dir /var/lib/drover
fi
exec drover agent -config /var/lib/drover/agent.hcl -data-dir /var/lib/drover
`
}
