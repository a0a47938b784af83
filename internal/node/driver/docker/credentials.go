package docker

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
func (d *Driver) credentials(ctx context.Context, c taskConfig) (auth, error) {
	if c.auth != (auth{}) {
		return c.auth, nil
	}
	server := registryOf(c.image)
	for _, find := range []func(context.Context, string) (auth, error){d.fromFile, d.fromHelper} {
		a, err := find(ctx, server)
		if err != nil && !c.softAuth {
			return a, fmt.Errorf("finding the account for %s: %w", server, err)
		}
		if err != nil {
			d.cfg.Log.Warn("pulling without an account (auth_soft_fail)", "image", c.image, "error", err)
		}
		if err == nil && a != (auth{}) {
			return a, nil
		}
	}
	return auth{}, nil
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

func (d *Driver) fromFile(ctx context.Context, server string) (auth, error) {
	if d.cfg.AuthConfig == "" {
		return auth{}, nil
	}
	text, err := os.ReadFile(d.cfg.AuthConfig)
	if err != nil {
		return auth{}, drover.Errorf(drover.Unavailable, "auth.config: %w", err)
	}
	var file authFile
	if err := json.Unmarshal(text, &file); err != nil {
		return auth{}, drover.Errorf(drover.Invalid, "auth.config: %s is no docker config.json: %w", d.cfg.AuthConfig, err)
	}
	for name, helper := range file.CredHelpers {
		if sameServer(name, server) {
			return d.askHelper(ctx, helper, server)
		}
	}
	for name, entry := range file.Auths {
		if !sameServer(name, server) {
			continue
		}
		a := auth{username: entry.Username, password: entry.Password, token: entry.IdentityToken, server: server}
		if entry.Auth != "" {
			plain, err := base64.StdEncoding.DecodeString(entry.Auth)
			user, password, found := strings.Cut(string(plain), ":")
			if err != nil || !found {
				return auth{}, drover.Errorf(drover.Invalid, "auth.config: the entry of %s is not base64 of user:password", name)
			}
			a.username, a.password = user, strings.TrimRight(password, "\x00")
		}
		if a.username != "" || a.token != "" {
			return a, nil
		}
	}
	if file.CredsStore != "" {
		return d.askHelper(ctx, file.CredsStore, server)
	}
	return auth{}, nil
}

func (d *Driver) fromHelper(ctx context.Context, server string) (auth, error) {
	if d.cfg.AuthHelper == "" {
		return auth{}, nil
	}
	return d.askHelper(ctx, d.cfg.AuthHelper, server)
}

// helperTime bounds a credential helper, which may ask a cloud.
const helperTime = 30 * time.Second

// askHelper runs docker-credential-<helper> get. A server that it does not know is no error.
func (d *Driver) askHelper(ctx context.Context, helper, server string) (auth, error) {
	ctx, cancel := d.cfg.Clock.WithTimeout(ctx, helperTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "docker-credential-"+helper, "get")
	cmd.Stdin = strings.NewReader(server)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && strings.Contains(string(out), "not found") {
			return auth{}, nil
		}
		return auth{}, drover.Errorf(drover.Unavailable, "docker-credential-%s: %w: %s", helper, err, strings.TrimSpace(string(out)))
	}
	var said struct{ Username, Secret string }
	if err := json.Unmarshal(out, &said); err != nil {
		return auth{}, drover.Errorf(drover.Unavailable, "docker-credential-%s: %w", helper, err)
	}
	if said.Username == "<token>" { // as docker has it
		return auth{token: said.Secret, server: server}, nil
	}
	return auth{username: said.Username, password: said.Secret, server: server}, nil
}

// sameServer compares registries, however they are written.
func sameServer(a, b string) bool { return host(a) == host(b) }

func host(server string) string {
	server = strings.TrimPrefix(strings.TrimPrefix(server, "https://"), "http://")
	server, _, _ = strings.Cut(server, "/")
	if server == "docker.io" || server == "registry-1.docker.io" {
		return "index.docker.io"
	}
	return server
}
