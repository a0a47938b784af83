package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	identities "github.com/drover-project/drover/internal/claims"
)

// TestTokensSayWhatTheirNamespaceAdds: a task's tokens have the claims that its namespace requires, and those of the others that its
// identity names; what the namespace says is in tokens from their next renewal on. A claim that there is not is refused, with the task.
func TestTokensSayWhatTheirNamespaceAdds(t *testing.T) {
	t.Parallel()
	a := dev(t)
	c := a.nomad()
	apply := func(team string) {
		a.drover(`name = "default"
required_extra_claims {
  team = "`+team+`"
  unit = "${job.region}/${job.namespace}/${job.id}/${task.name}"
}
optional_extra_claims {
  pool = "${node.pool}"
}`, "namespace", "apply", "-")
	}
	apply("blue")
	job := rawJob("claims", "service", "/bin/sh", "-c", `while cat "$NOMAD_SECRETS_DIR/nomad_aws.jwt" && echo; do sleep 1; done`)
	task := job.TaskGroups[0].Tasks[0]
	task.Identities = []*api.WorkloadIdentity{{
		Name: "aws", Audience: []string{"sts"}, File: true, TTL: 10 * time.Second, ExtraClaims: []string{"pool", "cost"},
	}}
	_, _, err := c.Jobs().Register(job, nil)
	require.ErrorContains(t, err, `task "main": identity "aws": namespace "default" has no extra claim "cost"`)
	task.Identities[0].ExtraClaims = []string{"pool"}
	_, _, err = c.Jobs().Register(job, nil)
	require.NoError(t, err)
	alloc := allocation(t, c, "claims", "running")
	_, text := a.request("GET", "/.well-known/jwks.json", "")
	var set jose.JSONWebKeySet
	require.NoError(t, json.Unmarshal([]byte(text), &set))
	says := func(team string) {
		eventually(t, "a token of team "+team, func() (bool, string) {
			lines := strings.Split(strings.TrimSpace(logs(t, c, alloc.ID, "stdout")), "\n")
			token := lines[len(lines)-1]
			if _, err := identities.Verify(token, set.Keys); err != nil {
				return false, err.Error()
			}
			object, err := jose.ParseSigned(token, []jose.SignatureAlgorithm{jose.RS256})
			require.NoError(t, err)
			var said map[string]any
			require.NoError(t, json.Unmarshal(object.UnsafePayloadWithoutVerification(), &said)) // it was verified
			require.Equal(t, "global/default/claims/main", said["unit"])
			require.Equal(t, "default", said["pool"])
			require.Equal(t, "claims", said["nomad_job_id"])
			return said["team"] == team, token
		})
	}
	says("blue")
	apply("green")
	says("green")
	out, err := a.run("namespace", "inspect", "default")
	require.NoError(t, err, out)
	require.Contains(t, out, `"${node.pool}"`)
}
