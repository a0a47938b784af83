package clouds

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAllowed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		options map[string]string
		want    bool
	}{
		{nil, true},
		{map[string]string{"fingerprint.denylist": "env_gce, env_aws"}, false},
		{map[string]string{"fingerprint.blacklist": "env_aws"}, false},
		{map[string]string{"fingerprint.denylist": "env_gce"}, true},
		{map[string]string{"fingerprint.allowlist": " env_aws\t,cpu"}, true},
		{map[string]string{"fingerprint.allowlist": "cpu,memory"}, false},
		{map[string]string{"fingerprint.whitelist": "env_gce"}, false},
		{map[string]string{"fingerprint.allowlist": "env_aws", "fingerprint.denylist": "env_aws"}, false},
	} {
		require.Equal(t, c.want, Allowed(c.options, "fingerprint", "env_aws"), "%v", c.options)
	}
}

func TestRetry(t *testing.T) {
	t.Parallel()
	attempts, interval, exit := Retry(nil, "env_aws")
	require.Equal(t, []any{3, 2 * time.Second, false}, []any{attempts, interval, exit})
	blocks := []*Fingerprint{{Name: "env_gce"}, {Name: "env_aws", RetryInterval: "1m", RetryAttempts: new(-1), ExitOnFailure: new(true)}}
	attempts, interval, exit = Retry(blocks, "env_aws")
	require.Equal(t, []any{-1, time.Minute, true}, []any{attempts, interval, exit})
}

func TestProblems(t *testing.T) {
	t.Parallel()
	require.Empty(t, Problems([]*Fingerprint{{Name: "env_openstack", RetryAttempts: new(0)}}, map[string]string{
		"fingerprint.denylist": "env_aws,env_azure,env_digitalocean,env_gce,consul,vault", "fingerprint.allowlist": "cpu",
	}))
	wrong := []*Fingerprint{{Name: "env_aws", RetryInterval: "0s", RetryAttempts: new(-2)}, {Name: "env_moon"}}
	require.EqualError(t, errors.Join(Problems(wrong, map[string]string{"fingerprint.denylist": "cpu"})...),
		`client.fingerprint.env_aws.retry_interval: "0s" is no duration above 0s such as 10s
client.fingerprint.env_aws.retry_attempts: must be -1 or more, got -2
client.fingerprint.env_moon: there is no such cloud: use env_aws, env_azure, env_digitalocean, env_gce, env_openstack
client.options: fingerprint.denylist names "cpu", which a node is never without: `+
			`only env_aws, env_azure, env_digitalocean, env_gce, env_openstack can be left out`)
}

func TestUnheededOptions(t *testing.T) {
	t.Parallel()
	want := []string{"docker.volumes.enabled", "driver..enable", "driver.x", "fingerprint.env_aws.enable", "plain"}
	require.Equal(t, want, Unheeded(map[string]string{
		"driver.raw_exec.enable": "1", "driver.allowlist": "docker", "driver.blacklist": "java", "fingerprint.denylist": "env_aws", "plain": "1",
		"docker.volumes.enabled": "true", "driver.x": "y", "fingerprint.env_aws.enable": "1", "driver..enable": "1",
	}))
	require.Empty(t, Unheeded(nil))
}
