package ec2

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/drover-project/drover/internal/fleet/provider"
)

// Credentials give the keys that sign calls.
type Credentials = aws.CredentialsProvider

// Static returns credentials that are always the same.
func Static(accessKey, secretKey string) Credentials {
	return credentials.NewStaticCredentialsProvider(accessKey, secretKey, "")
}

// ChainConfig says where a Chain looks. All fields are optional.
type ChainConfig struct {
	File   string       // of credentials; default AWS_SHARED_CREDENTIALS_FILE, else ~/.aws/credentials
	Region string       // of the calls for tokens of a role; default that of the environment
	HTTP   *http.Client // for the services that give credentials; default the SDK's
}

// Chain finds credentials as Amazon's own tools do. It looks in the process's environment, and in the shared configuration and
// credentials files (keys, SSO, an assumed role, a program). Then it tries a web identity's token, and the metadata services of
// a container or a machine. It fetches those that expire anew, five minutes before they do. It is safe for use by several
// goroutines.
type Chain struct {
	cfg ChainConfig

	mu    sync.Mutex
	found Credentials // guarded by mu; nil before the first look
}

const refreshBefore = 5 * time.Minute

// NewChain returns a chain that has looked nowhere yet.
func NewChain(cfg ChainConfig) *Chain { return &Chain{cfg: cfg} }

// Invalidate makes the next Retrieve look anew: what the last one gave was refused.
func (c *Chain) Invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.found = nil
}

// Retrieve implements aws.CredentialsProvider. Errors: *provider.Error, Auth, with what was looked at.
func (c *Chain) Retrieve(ctx context.Context) (aws.Credentials, error) {
	source, err := c.source(ctx)
	if err != nil {
		return aws.Credentials{}, refused(err)
	}
	key, err := source.Retrieve(ctx)
	if err != nil {
		return key, refused(err)
	}
	return key, nil
}

// source chooses by what the environment and the files hold.
func (c *Chain) source(ctx context.Context) (Credentials, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.found == nil {
		found, err := find(ctx, c.cfg)
		if err != nil {
			return nil, err
		}
		c.found = aws.NewCredentialsCache(found, func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = refreshBefore })
	}
	return c.found, nil
}

func refused(err error) error {
	return &provider.Error{
		Kind:    provider.Auth,
		Message: "no credentials by AWS_ACCESS_KEY_ID, the shared files, a web identity or the metadata service: " + err.Error(),
	}
}
