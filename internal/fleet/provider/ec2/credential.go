package ec2

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// Credentials sign calls.
type Credentials struct {
	AccessKey    string
	SecretKey    string
	SessionToken string    // of a role
	Expires      time.Time // zero = never
}

// Source gives credentials. All methods may be called from several goroutines at once.
type Source interface {
	// Get returns what counts now. Errors: *provider.Error, Auth if there are none, with what was looked at.
	Get(ctx context.Context) (Credentials, error)
	// Expire says that what Get gave was refused.
	Expire()
}

// Get implements Source: they are always the same.
func (c Credentials) Get(context.Context) (Credentials, error) { return c, nil }

// Expire implements Source.
func (c Credentials) Expire() {}

// ChainConfig says where a Chain looks.
type ChainConfig struct {
	Getenv   func(string) string // of the process's environment
	File     string              // default AWS_SHARED_CREDENTIALS_FILE, else ~/.aws/credentials
	Profile  string              // default AWS_PROFILE, else "default"
	Metadata string              // default AWS_EC2_METADATA_SERVICE_ENDPOINT, else http://169.254.169.254
	HTTP     *http.Client        // for the metadata service
}

// Chain looks for credentials as Amazon's own tools do: in the environment, in the credentials file, and at the metadata
// service for those of the machine's role, which it fetches anew before they expire.
type Chain struct {
	cfg   ChainConfig
	clock clock.Clock
	mu    sync.Mutex
	last  Credentials // guarded by mu
}

const (
	metadataTimeout = 5 * time.Second
	refreshBefore   = 5 * time.Minute
)

// NewChain returns a chain that has looked nowhere yet.
func NewChain(cfg ChainConfig, c clock.Clock) *Chain {
	or := func(v *string, key, def string) {
		if *v == "" {
			*v = cfg.Getenv(key)
		}
		if *v == "" {
			*v = def
		}
	}
	or(&cfg.File, "AWS_SHARED_CREDENTIALS_FILE", filepath.Join(cfg.Getenv("HOME"), ".aws", "credentials"))
	or(&cfg.Profile, "AWS_PROFILE", "default")
	or(&cfg.Metadata, "AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://169.254.169.254")
	if cfg.HTTP == nil {
		cfg.HTTP = &http.Client{Timeout: metadataTimeout}
	}
	return &Chain{cfg: cfg, clock: c}
}

// Expire implements Source.
func (c *Chain) Expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = Credentials{}
}

// Get implements Source.
func (c *Chain) Get(ctx context.Context) (Credentials, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last.AccessKey != "" && (c.last.Expires.IsZero() || c.clock.Now().Before(c.last.Expires.Add(-refreshBefore))) {
		return c.last, nil
	}
	found, err := c.look(ctx)
	switch {
	case err == nil:
		c.last = found
	case c.last.AccessKey != "" && c.clock.Now().Before(c.last.Expires):
		return c.last, nil // good for some minutes more
	}
	return found, err
}

func (c *Chain) look(ctx context.Context) (Credentials, error) {
	if key := c.cfg.Getenv("AWS_ACCESS_KEY_ID"); key != "" {
		return Credentials{AccessKey: key, SecretKey: c.cfg.Getenv("AWS_SECRET_ACCESS_KEY"), SessionToken: c.cfg.Getenv("AWS_SESSION_TOKEN")}, nil
	}
	found, err := fromFile(c.cfg.File, c.cfg.Profile)
	if err != nil || found.AccessKey != "" {
		return found, err
	}
	if strings.EqualFold(c.cfg.Getenv("AWS_EC2_METADATA_DISABLED"), "true") {
		err = errors.New("AWS_EC2_METADATA_DISABLED is set")
	} else if found, err = c.fromRole(ctx); err == nil {
		return found, nil
	}
	return found, &provider.Error{Kind: provider.Auth, Message: fmt.Sprintf(
		"no credentials: AWS_ACCESS_KEY_ID is not set, %s has no profile %q, and the metadata service gave none (%v)", c.cfg.File, c.cfg.Profile, err)}
}

// fromFile reads a profile; no profile and no file are no error.
func fromFile(path, profile string) (c Credentials, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, &provider.Error{Kind: provider.Auth, Message: "credentials: " + err.Error()}
	}
	defer f.Close()
	here := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			name := strings.TrimSpace(strings.Trim(line, "[]"))
			here = name == profile || name == "profile "+profile
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !here || !ok || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
			continue
		}
		switch value = strings.TrimSpace(value); strings.ToLower(strings.TrimSpace(key)) {
		case "aws_access_key_id":
			c.AccessKey = value
		case "aws_secret_access_key":
			c.SecretKey = value
		case "aws_session_token":
			c.SessionToken = value
		}
	}
	if c.AccessKey != "" && c.SecretKey == "" {
		return c, &provider.Error{Kind: provider.Auth, Message: fmt.Sprintf("%s: profile %q has no aws_secret_access_key", path, profile)}
	}
	return c, nil
}

// fromRole asks the metadata service (IMDSv2) for the credentials of the machine's role.
func (c *Chain) fromRole(ctx context.Context) (found Credentials, err error) {
	session, err := c.metadata(ctx, http.MethodPut, "/latest/api/token", "")
	if err != nil {
		return found, err
	}
	const path = "/latest/meta-data/iam/security-credentials/"
	role, err := c.metadata(ctx, http.MethodGet, path, session)
	if err != nil {
		return found, err
	}
	role, _, _ = strings.Cut(strings.TrimSpace(role), "\n")
	text, err := c.metadata(ctx, http.MethodGet, path+role, session)
	if err != nil {
		return found, err
	}
	var answer struct {
		Code, AccessKeyID, SecretAccessKey, Token string
		Expiration                                time.Time
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return found, fmt.Errorf("reading the credentials of role %s: %w", role, err)
	}
	if answer.AccessKeyID == "" {
		return found, fmt.Errorf("role %s has no credentials: %s", role, answer.Code)
	}
	return Credentials{AccessKey: answer.AccessKeyID, SecretKey: answer.SecretAccessKey, SessionToken: answer.Token, Expires: answer.Expiration}, nil
}

func (c *Chain) metadata(ctx context.Context, method, path, session string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.cfg.Metadata+path, nil)
	if err != nil {
		return "", err
	}
	if session == "" {
		r.Header.Set("X-aws-ec2-metadata-token-ttl-seconds", "21600")
	} else {
		r.Header.Set("X-aws-ec2-metadata-token", session)
	}
	answer, err := c.cfg.HTTP.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s", method, path, answer.Status)
	}
	return string(data), err
}
