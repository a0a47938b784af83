package machine

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover"
)

// metadataWithin is how long the metadata service may take, which is on the machine's own host.
const metadataWithin = 5 * time.Second

// LaunchToken returns the token of this machine out of those of the batch that it was bought in, whose user data are equal.
// Its launch index says which, and EC2's metadata service (the version with sessions) at the address tells that index.
// Errors: Unavailable; Invalid if there is no token for the index.
func LaunchToken(ctx context.Context, service string, tokens []string) (string, error) {
	client := &http.Client{Timeout: metadataWithin, Transport: &http.Transport{DisableKeepAlives: true}}
	session, err := metadata(ctx, client, http.MethodPut, service+"/latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds", "60")
	if err != nil {
		return "", err
	}
	text, err := metadata(ctx, client, http.MethodGet, service+"/latest/meta-data/ami-launch-index", "X-aws-ec2-metadata-token", session)
	if err != nil {
		return "", err
	}
	index, err := strconv.Atoi(text)
	if err != nil || index < 0 || index >= len(tokens) {
		return "", drover.Errorf(
			drover.Invalid, "client.machine.join_tokens: has %d tokens, and the machine's launch index is %.20q", len(tokens), text,
		)
	}
	return tokens[index], nil
}

// metadata makes one request with one header and returns the answer without spaces around it, at most 1 kB. Errors:
// Unavailable, also for any status but 200.
func metadata(ctx context.Context, client *http.Client, method, url, header, value string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return "", fmt.Errorf("client.machine.metadata: %w", err)
	}
	r.Header.Set(header, value)
	answer, err := client.Do(r)
	if err != nil {
		return "", drover.Errorf(drover.Unavailable, "client.machine.metadata: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s", method, url, answer.Status)
	}
	if err != nil {
		return "", drover.Errorf(drover.Unavailable, "client.machine.metadata: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
