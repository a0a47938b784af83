package images

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/drover-project/drover"
)

// hub is how docker's files name the registry of images without one.
const hub = "https://index.docker.io/v1/"

// registryOf is the registry of an image's reference.
func registryOf(image string) string {
	first, _, found := strings.Cut(image, "/")
	if !found || !strings.ContainsAny(first, ".:") && first != "localhost" || first == "docker.io" {
		return hub
	}
	return first
}

// credentials are the account for an image: the task's, else the node's for its registry, from the file and then from
// the helper; none is an answer too.
func (s *Cache) credentials(ctx context.Context, c Request) (Account, error) {
	if c.Account != (Account{}) {
		return c.Account, nil
	}
	server := registryOf(c.Ref)
	for _, find := range []func(context.Context, string) (Account, error){s.fromFile, s.fromHelper} {
		a, err := find(ctx, server)
		if err != nil && !c.AccountOptional {
			return a, fmt.Errorf("finding the account for %s: %w", server, err)
		}
		if err != nil {
			s.cfg.Log.Warn("pulling without an account (auth_soft_fail)", "image", c.Ref, "error", err)
		}
		if err == nil && a != (Account{}) {
			return a, nil
		}
	}
	return Account{}, nil
}

// authFile is docker's config.json.
type authFile struct {
	Auths map[string]struct {
		Auth          string `json:"auth"` // base64 of user:password
		Username      string `json:"username"`
		Password      string `json:"password"`
		IdentityToken string `json:"identitytoken"`
	} `json:"auths"`
	CredHelpers map[string]string `json:"credHelpers"`
	CredsStore  string            `json:"credsStore"`
}

// fromFile looks in docker's config.json, in docker's order: the registry's helper, its entry, the common helper. It is read each time,
// as operators change it.
func (s *Cache) fromFile(ctx context.Context, server string) (Account, error) {
	if s.cfg.AuthConfig == "" {
		return Account{}, nil
	}
	text, err := os.ReadFile(s.cfg.AuthConfig)
	if err != nil {
		return Account{}, drover.Errorf(drover.Unavailable, "auth.config: %w", err)
	}
	var file authFile
	if err := json.Unmarshal(text, &file); err != nil {
		return Account{}, drover.Errorf(drover.Invalid, "auth.config: %s is no docker config.json: %w", s.cfg.AuthConfig, err)
	}
	for name, helper := range file.CredHelpers {
		if sameServer(name, server) {
			return s.askHelper(ctx, helper, server)
		}
	}
	for name, entry := range file.Auths {
		if !sameServer(name, server) {
			continue
		}
		a := Account{Username: entry.Username, Password: entry.Password, Token: entry.IdentityToken, Server: server}
		if entry.Auth != "" {
			plain, err := base64.StdEncoding.DecodeString(entry.Auth)
			user, password, found := strings.Cut(string(plain), ":")
			if err != nil || !found {
				return Account{}, drover.Errorf(drover.Invalid, "auth.config: the entry of %s is not base64 of user:password", name)
			}
			// As docker's own client does: the file may have zero bytes after the password.
			a.Username, a.Password = user, strings.TrimRight(password, "\x00")
		}
		if a.Username != "" || a.Token != "" {
			return a, nil
		}
	}
	if file.CredsStore != "" {
		return s.askHelper(ctx, file.CredsStore, server)
	}
	return Account{}, nil
}

// fromHelper asks the node's helper for all registries, if it has one.
func (s *Cache) fromHelper(ctx context.Context, server string) (Account, error) {
	if s.cfg.AuthHelper == "" {
		return Account{}, nil
	}
	return s.askHelper(ctx, s.cfg.AuthHelper, server)
}

// helperTime bounds a credential helper, which may ask a cloud.
const helperTime = 30 * time.Second

// askHelper runs docker-credential-<helper> get. A server that it does not know is no error.
func (s *Cache) askHelper(ctx context.Context, helper, server string) (Account, error) {
	ctx, cancel := s.cfg.Clock.WithTimeout(ctx, helperTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "docker-credential-"+helper, "get")
	cmd.Stdin = strings.NewReader(server)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && strings.Contains(string(out), "not found") {
			return Account{}, nil
		}
		return Account{}, drover.Errorf(drover.Unavailable, "docker-credential-%s: %w: %s", helper, err, strings.TrimSpace(string(out)))
	}
	var said struct{ Username, Secret string }
	if err := json.Unmarshal(out, &said); err != nil {
		return Account{}, drover.Errorf(drover.Unavailable, "docker-credential-%s: %w", helper, err)
	}
	if said.Username == "<token>" { // as docker has it
		return Account{Token: said.Secret, Server: server}, nil
	}
	return Account{Username: said.Username, Password: said.Secret, Server: server}, nil
}

// sameServer compares registries, however they are written.
func sameServer(a, b string) bool { return host(a) == host(b) }

// host is a registry's name without scheme and path; all names of Docker Hub become one.
func host(server string) string {
	server = strings.TrimPrefix(strings.TrimPrefix(server, "https://"), "http://")
	server, _, _ = strings.Cut(server, "/")
	if server == "docker.io" || server == "registry-1.docker.io" {
		return "index.docker.io"
	}
	return server
}
